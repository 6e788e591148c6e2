"""Complete lists, page by page, with the numbers that prove their completeness. Single requests are made elsewhere."""
