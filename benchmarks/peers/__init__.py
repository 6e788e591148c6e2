"""The measured tools: each module runs one tool in a process of its own.

A peer is started as `python -m benchmarks.peers.NAME BASE_URL FOLDER`, copies the library at BASE_URL into the empty FOLDER, and prints
one JSON object on its last line: `records`, and `seconds` from the beginning of the work until the copy can be used.
"""
