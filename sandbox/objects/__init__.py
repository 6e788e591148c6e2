"""The storage service: an object store on its own origin that does to clients what Amazon S3 does.

It accepts uploads by signed POST forms and serves objects at signed addresses, path-style: ``ORIGIN/BUCKET/KEY``. Each tenant has
one bucket of its name. The package does not know publications, users or API versions.
"""
