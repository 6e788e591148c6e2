"""The state that runs share: the budget of requests, the journal of writes, the leases of libraries.

It is in the SQLite file `state.db` of the data folder, or in a Postgres database that several machines share. Both have the same tables
(`tables.py`) and take the same statements (`store.py`); `opening.py` chooses by the setting `state`.
"""
