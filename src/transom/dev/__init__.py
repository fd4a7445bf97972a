"""`transom dev`: a page that shows a server's tools, its Views and what goes over the wire."""
