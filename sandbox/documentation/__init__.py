"""The interactive documentation at ``{base_url}/api``: one page, made from the declarations that serve, nothing from elsewhere."""
