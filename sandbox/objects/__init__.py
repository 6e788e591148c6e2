"""The storage service: an object store on its own origin with the parts of Amazon S3's API that the library needs.

It accepts uploads by signed POST forms and serves objects at signed addresses, path-style: ``ORIGIN/BUCKET/KEY``. Each tenant has
one bucket of its name. The package does not know publications, users or API versions.
"""
