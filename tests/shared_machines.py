"""The configuration of machines that share a bucket and a database, each with a work folder of its own."""

SHARED = """
data = "s3://{bucket}/library"
work = "work"
state = "postgres"
postgres_env = "TEST_POSTGRES"
postgres.load = false
"""

TENANT = """
[tenants.{name}]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = {limit}
"""
