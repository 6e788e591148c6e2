"""Files from and to the library and its storage service. The storage service never gets a sign-in."""
