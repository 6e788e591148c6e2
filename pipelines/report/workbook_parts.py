"""The XML of a workbook around its rows (Office Open XML, ECMA-376): what every file has, and what depends on sheets, columns and links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import NamedTuple

_DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = f'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="{_OFFICE}"'
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"

PLAIN, HEADING, WHOLE, LINK = range(4)
"""Number of each format in `STYLES`: as it comes, bold on grey, a whole number at the left, an address to click."""

STYLES = (
    f"{_DECLARATION}<styleSheet {_MAIN}>"
    '<fonts count="3"><font><sz val="11"/><name val="Calibri"/><family val="2"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/><family val="2"/></font>'
    '<font><u/><sz val="11"/><color rgb="FF0000FF"/><name val="Calibri"/><family val="2"/></font></fonts>'
    '<fills count="3"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '<fill><patternFill patternType="solid"><fgColor rgb="FFE4EAE6"/><bgColor indexed="64"/></patternFill></fill></fills>'
    '<borders count="2"><border><left/><right/><top/><bottom/><diagonal/></border>'
    '<border><left/><right/><top/><bottom style="thin"><color auto="1"/></bottom><diagonal/></border></borders>'
    '<cellStyleXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/>'
    '<xf numFmtId="0" fontId="2" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="4"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="2" borderId="1" xfId="0" applyFont="1" applyFill="1" applyBorder="1" applyAlignment="1">'
    '<alignment vertical="top"/></xf>'
    '<xf numFmtId="1" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyAlignment="1">'
    '<alignment horizontal="left"/></xf>'
    '<xf numFmtId="0" fontId="2" fillId="0" borderId="0" xfId="1" applyFont="1"/></cellXfs>'
    '<cellStyles count="2"><cellStyle name="Hyperlink" xfId="1" builtinId="8"/>'
    '<cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)

ROOT = (
    f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
)

_ESCAPED = re.compile("%[0-9a-fA-F]{2}")
_NOT_IN_ADDRESSES = str.maketrans({sign: f"%{ord(sign):02x}" for sign in '% "<>[]^`{}'})


class Sheet(NamedTuple):
    """A finished sheet: its name, and the cells from the first to the last, such as `$A$1:$H$9`."""

    name: str
    cells: str


def letters(place: int) -> str:
    """The letters of a column: A for 0, AA for 26."""
    before, last = divmod(place, 26)
    return (letters(before - 1) if before else "") + ascii_uppercase[last]


def sheet_start(widths: Sequence[float], *, is_first: bool) -> str:
    """The sheet up to its rows: the first one stays in sight, and on paper all columns are beside each other."""
    columns = "".join(
        f'<col min="{place}" max="{place}" width="{width + 0.7109375}" customWidth="1"/>'  # 5 pixels of padding, in characters
        for place, width in enumerate(widths, start=1)
    )
    selected = ' tabSelected="1"' if is_first else ""
    return (
        f'{_DECLARATION}<worksheet {_MAIN}><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>'
        f'<sheetViews><sheetView{selected} workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        '<selection pane="bottomLeft"/></sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>'
        f"{f'<cols>{columns}</cols>' if columns else ''}<sheetData>"
    )


def sheet_end(last_column: str, last_row: int, links: Sequence[tuple[str, str]]) -> str:
    """The sheet after its rows. `links`: cell and address, which are numbered from 1 on."""
    linked = "".join(
        f'<hyperlink ref="{cell}" r:id="rId{number}"{_location(address)}/>'
        for number, (cell, address) in enumerate(links, start=1)
    )
    return (
        f'</sheetData><autoFilter ref="A1:{last_column}{last_row}"/>{f"<hyperlinks>{linked}</hyperlinks>" if linked else ""}'
        '<pageMargins left="0.7" right="0.7" top="0.75" bottom="0.75" header="0.3" footer="0.3"/>'
        '<pageSetup fitToHeight="0" orientation="landscape"/>'
        f'<ignoredErrors><ignoredError sqref="A1:XFD{last_row}" numberStoredAsText="1"/></ignoredErrors></worksheet>'
    )


def link_targets(links: Sequence[tuple[str, str]]) -> str:
    """The addresses of a sheet's links. What follows a # is beside the cell."""
    targets = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/hyperlink" Target="{_attribute(_address(address.partition("#")[0]))}" '
        'TargetMode="External"/>'
        for number, (_cell, address) in enumerate(links, start=1)
    )
    return f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships">{targets}</Relationships>'


def content_types(sheets: int) -> str:
    """The type of every part."""
    parts = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        for number in range(1, sheets + 1)
    )
    return (
        f'{_DECLARATION}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/>{parts}</Types>'
    )


def workbook(sheets: Sequence[Sheet]) -> str:
    """The list of the sheets, with their filters, and the heading that is printed on each page."""
    listed = "".join(
        f'<sheet name="{_attribute(one.name)}" sheetId="{number}" r:id="rId{number}"/>'
        for number, one in enumerate(sheets, start=1)
    )
    filters = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{place}" hidden="1">{_quoted(one.name)}!{one.cells}</definedName>'
        for place, one in enumerate(sheets)
    )
    headings = "".join(
        f'<definedName name="_xlnm.Print_Titles" localSheetId="{place}">{_quoted(one.name)}!$1:$1</definedName>'
        for place, one in enumerate(sheets)
    )
    return (
        f'{_DECLARATION}<workbook {_MAIN}><bookViews><workbookView xWindow="240" yWindow="15" windowWidth="16095" windowHeight="9660"/>'
        f"</bookViews><sheets>{listed}</sheets><definedNames>{filters}{headings}</definedNames></workbook>"
    )


def workbook_relations(sheets: int) -> str:
    """Where the parts of the workbook are."""
    parts = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        for number in range(1, sheets + 1)
    )
    styles = f'<Relationship Id="rId{sheets + 1}" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    return f'{_DECLARATION}<Relationships xmlns="{_PACKAGE}/relationships">{parts}{styles}</Relationships>'


def _location(address: str) -> str:
    after = address.partition("#")[2]
    return f' location="{_attribute(after)}"' if after else ""


def _address(text: str) -> str:
    """An address without signs that Excel refuses. One that has percent codes is left as it is."""
    return text if _ESCAPED.search(text) else text.translate(_NOT_IN_ADDRESSES)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
