"""The interactive documentation at ``{base_url}/api``: one page made from the endpoints, without other addresses."""
