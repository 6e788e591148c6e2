"""Files of a library: downloads by signed addresses, and uploads by signed forms."""
