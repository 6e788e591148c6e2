"""The sources of records and files, and ``ATTRIBUTION.md``, which is made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Described = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Source:
    """A source repository of records. ``abstracts``: its licence covers them, so they are included."""

    commit: str
    licence: str
    credit: str
    taken: str
    abstracts: bool = True


@dataclass(frozen=True, slots=True)
class FileSource:
    """A source repository of files; ``files.json`` has commit and path of each file."""

    licence: str
    credit: str


_CC_BY_4 = "[CC BY 4.0](https://creativecommons.org/licenses/by/4.0/)"
_CC_BY_SA_4 = "[CC BY-SA 4.0](https://creativecommons.org/licenses/by-sa/4.0/)"
_CC_BY_SA_3 = "[CC BY-SA 3.0](https://creativecommons.org/licenses/by-sa/3.0/)"
_CC0_OR_BY = f"[CC0 1.0](https://creativecommons.org/publicdomain/zero/1.0/) or {_CC_BY_4}"
_NIST = "public domain in the USA (17 U.S.C. 105), free elsewhere; see below"
_GUTENBERG = "public domain in the USA, Project Gutenberg licence; see below"

SOURCES = {
    "retorquere/zotero-better-bibtex": Source(
        commit="73dd6799831d1c11f0186bd44bbb26c43b95e521",
        licence="MIT, see below",
        credit="Copyright (c) 2016 Emiliano Heyns",
        taken="test/fixtures/import/\\*.bib and test/fixtures/export/\\*.json, a selection",
        abstracts=False,
    ),
    "zygmuntz/goodbooks-10k": Source(
        commit="6dd165b555a7b47b2dd36743a425776e641ff50c",
        licence=_CC_BY_SA_4,
        credit="Zygmunt Zając",
        taken="books.csv, 1,000 of its rows",
    ),
    "usnistgov/NIST-Tech-Pubs": Source(
        commit="00ce7d93ac6a7626aac4a914fd7fd320d8727855",
        licence=_NIST,
        credit="National Institute of Standards and Technology",
        taken="bib/\\*.ris, a selection",
    ),
    "greenelab/deep-review": Source(
        commit="0265a4b82f16869695dc50b3f0d739dc29f60480",
        licence=_CC0_OR_BY,
        credit="the authors of the Deep Review",
        taken="references.json of the output branch",
        abstracts=False,
    ),
    "solrmarc/solrmarc": Source(
        commit="b3ef8b3e1f5bb2d0882a0be843d27c5d861ae20e",
        licence="[Apache-2.0](https://www.apache.org/licenses/LICENSE-2.0)",
        credit="the SolrMarc project; catalogue records of the University of Virginia Library",
        taken="test/data/records/uva_001_2000.mrc and specTestRecs.mrc, a selection",
    ),
    "LibraryCarpentry/lc-open-refine": Source(
        commit="39e72ab8bfa89def789db39e3164e5293ce3aeab",
        licence=_CC_BY_4,
        credit="Library Carpentry; article metadata of the Directory of Open Access Journals",
        taken="episodes/data/doaj-article-sample.csv, a selection",
    ),
    "HoTT/book": Source(
        commit="578b85cc8d586b1677ec4335148adeb443057d24",
        licence=_CC_BY_SA_3,
        credit="The Univalent Foundations Program, Homotopy Type Theory",
        taken="references.bib",
    ),
    "greenelab/scihub-manuscript": Source(
        commit="a24d224e4fdb170dbeff25545f958f6b77b81a31",
        licence=_CC0_OR_BY,
        credit="the authors of the Sci-Hub coverage study",
        taken="references.json of the output branch",
        abstracts=False,
    ),
    "traject/traject": Source(
        commit="5afeefee99931fc7382d72a31c0bf8ef9b36a818",
        licence="MIT, see below",
        credit="Copyright (c) 2013 Jonathan Rochkind",
        taken="test/test_support/test_data.utf8.mrc",
    ),
    "ruby-marc/ruby-marc": Source(
        commit="261ca6aff4c38a2775bd5d67b4297982da9d787c",
        licence="MIT, see below",
        credit="Copyright (c) 2007 Ed Summers, Kevin Clarke, Will Groppe",
        taken="test/batch.dat",
    ),
    "LibreCat/Catmandu-MARC": Source(
        commit="951584af32a5ed22520d4ceae93dcf47c689c5e3",
        licence=_CC_BY_4,
        credit="Boston University Library",
        taken="t/bu_bibs.mrc",
    ),
}

FILE_SOURCES = {
    "py-pdf/sample-files": FileSource(_CC_BY_SA_4, "the contributors of py-pdf/sample-files"),
    "pdf-association/pdf20examples": FileSource(_CC_BY_SA_4, "PDF Association"),
    "w3c/epubcheck": FileSource(
        "BSD-3-Clause, see below",
        "Copyright © 2007 Adobe Systems Incorporated, © 2008 IDPF, © 2017 W3C (MIT, ERCIM, Keio, Beihang)",
    ),
    "usnistgov/NIST-Tech-Pubs": FileSource(_NIST, "National Institute of Standards and Technology"),
    "GITenberg/Complete-Version-of-ye-Three-Blind-Mice_26060": FileSource(_GUTENBERG, "Project Gutenberg, book 26060"),
    "GITenberg/The-Little-Colonel-s-Hero_15122": FileSource(_GUTENBERG, "Project Gutenberg, book 15122"),
    "GITenberg/Contribution-to-Passamaquoddy-Folk-Lore_17997": FileSource(_GUTENBERG, "Project Gutenberg, book 17997"),
}

_TOP = """\
# Where the real library comes from

This folder contains bibliographic records and files of other projects, with thanks. You may pass them on under the terms
below, which are those of the sources and differ from the licence of the program. `build.py` made this file; do not edit it.

Each record in `publications.jsonl.gz` names its source under `_source`: repository, path, key and licence. `files.json` names
repository, commit, path, licence and SHA-256 of each file.
"""

_CHANGED = """\
## What was changed

- Records: converted to one JSON object for each record, LaTeX decoded to Unicode, a selection where the table says so.
  Titles, names, dates and identifiers are otherwise unchanged, errors included.
- Abstracts from zotero-better-bibtex, deep-review and scihub-manuscript were removed: authors and publishers wrote them,
  and the licences of those repositories do not cover them.
- Files: unchanged. `attachments.json` attaches them to records of this library; file and record are usually unrelated.

## Share-alike parts

The records from zygmuntz/goodbooks-10k (CC BY-SA 4.0) and HoTT/book (CC BY-SA 3.0) and the PDF files from
py-pdf/sample-files and pdf-association/pdf20examples (CC BY-SA 4.0) stay under those licences, our changes to the records
included. If you pass them on, changed or not, use the same licence and give the same credit. For a library without them,
leave out the records and files whose `licence` begins with `CC-BY-SA`.
"""

_NOTES = """\
## NIST

The records and files from usnistgov/NIST-Tech-Pubs were created by employees of the National Institute of Standards and
Technology, which is hereby acknowledged as their source. They are not subject to copyright in the United States
(17 U.S.C. 105); elsewhere NIST grants everyone the right to use, change and distribute them. They come "AS IS", without
any warranty of NIST. The records were changed in November 2026 as described above; the files were not changed.

## Project Gutenberg

The files from the GITenberg repositories belong to eBooks of Project Gutenberg. They are for the use of anyone anywhere in
the United States and most other parts of the world at no cost and with almost no restrictions whatsoever. The full Project
Gutenberg licence stands at the end of `files/26060.txt` and `files/17997-8.txt`; it holds for the pictures and sheets of
these books and of book 15122 too. Who is not in the United States should check the laws of their country first.
"""

_LICENCES = """\
## MIT licence

For retorquere/zotero-better-bibtex, traject/traject and ruby-marc/ruby-marc, with the copyright notices above:

> Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
> documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
> rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
> persons to whom the Software is furnished to do so, subject to the following conditions:
>
> The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
> Software.
>
> THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
> WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
> COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
> OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

## BSD 3-Clause licence

For w3c/epubcheck, with the copyright notices above:

> Redistribution and use in source and binary forms, with or without modification, are permitted provided that the
> following conditions are met:
>
> 1. Redistributions of source code must retain the above copyright notice, this list of conditions and the following
>    disclaimer.
> 2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions and the following
>    disclaimer in the documentation and/or other materials provided with the distribution.
> 3. Neither the name of the copyright holder nor the names of its contributors may be used to endorse or promote products
>    derived from this software without specific prior written permission.
>
> THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES,
> INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE
> DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL,
> SPECIAL, EXEMPLARY, OR CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES;
> LOSS OF USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
> CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF THIS
> SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""


def attribution(records: Described, files: Described) -> str:
    """Returns the text of ATTRIBUTION.md; a source that is not listed above is an error."""
    records_table = "\n".join(_record_rows(records))
    files_table = "\n".join(_file_rows(files))
    sections = (_TOP, f"## Records\n\n{records_table}\n", f"## Files\n\n{files_table}\n", _CHANGED, _NOTES, _LICENCES)
    return "\n".join(sections)


def _record_rows(records: Described) -> Iterator[str]:
    counts = Counter(record["_source"]["repo"] for record in records)
    if unknown := set(counts) - set(SOURCES):
        raise ValueError(f"records without attribution: {unknown}")
    yield "| source | commit | licence | credit | what was taken | records | abstracts |"
    yield "|---|---|---|---|---|--:|---|"
    for repo, source in SOURCES.items():
        abstracts = "as found" if source.abstracts else "removed"
        cells = (_link(repo, source.commit), source.commit[:12], source.licence, source.credit, source.taken)
        yield f"| {' | '.join(cells)} | {counts[repo]:,} | {abstracts} |"


def _file_rows(files: Described) -> Iterator[str]:
    yield "| file | source | commit | licence | credit |"
    yield "|---|---|---|---|---|"
    for file in files:
        source = FILE_SOURCES[file["repo"]]
        where = f"{_link(file['repo'], file['commit'])}: {file['path']}"
        yield f"| {file['filename']} | {where} | {file['commit'][:12]} | {source.licence} | {source.credit} |"


def _link(repo: str, commit: str) -> str:
    return f"[{repo}](https://github.com/{repo}/tree/{commit})"
