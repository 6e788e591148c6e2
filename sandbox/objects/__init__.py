"""The storage service: an object store on an origin of its own, which speaks Amazon S3's language where the library needs it.

It takes uploads by signed POST forms and gives objects out at signed addresses, path-style: ``ORIGIN/BUCKET/KEY``. A tenant
has one bucket, named like the tenant. Nothing here knows of publications, users or API versions.
"""
