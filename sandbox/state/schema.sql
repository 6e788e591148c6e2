-- One schema for all API versions: a publication is stored once, independently of them.
-- `key` joins tables; `id` is the number in the tenant's API.

CREATE TABLE tenants (
    key INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    signing_key BLOB NOT NULL -- signs this tenant's download addresses
);

-- A number is never used again, not even after a deletion.
CREATE TABLE sequences (
    tenant INTEGER NOT NULL REFERENCES tenants,
    resource TEXT NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (tenant, resource)
) WITHOUT ROWID;

-- Publications, assets, categories, organizations, users, locations, hard copies, authorities, collections and tasks: a JSON object each.
CREATE TABLE records (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    resource TEXT NOT NULL,
    id INTEGER NOT NULL,
    document TEXT NOT NULL,
    UNIQUE (tenant, resource, id)
);
CREATE UNIQUE INDEX users_by_email ON records (tenant, json_extract(document, '$.email') COLLATE NOCASE)
WHERE resource = 'users';
CREATE INDEX hard_copies_by_publication ON records (tenant, json_extract(document, '$.publication_id'))
WHERE resource = 'hard_copies';
CREATE INDEX assets_by_publication ON records (tenant, json_extract(document, '$.publication_id'))
WHERE resource = 'assets';
CREATE INDEX publications_by_date ON records (tenant, json_extract(document, '$.published_on'))
WHERE resource = 'publications';
CREATE INDEX publications_by_contributor ON records (tenant, json_extract(document, '$.contributor'))
WHERE resource = 'publications';

-- A password is in plain text: the sandbox prints it at the start.
CREATE VIEW users AS
SELECT
    key,
    tenant,
    id,
    json_extract(document, '$.email') COLLATE NOCASE AS email,
    json_extract(document, '$.name') AS name,
    json_extract(document, '$.roles') AS roles,
    json_extract(document, '$.password') AS password
FROM records WHERE resource = 'users';

CREATE TABLE sessions (
    cookie TEXT PRIMARY KEY,
    user INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    expires_at REAL -- null for the session of the ready line
) WITHOUT ROWID;

-- Uploads to the storage service, and the files to which records refer.
CREATE TABLE files (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id TEXT NOT NULL,      -- its storage key, of a record's file without the first folder
    content TEXT NOT NULL, -- the name of its bytes: a file of the folder beside the state, or of the real library
    filename TEXT NOT NULL,
    mime_type TEXT,
    size INTEGER NOT NULL,
    UNIQUE (tenant, id)
);

-- OAuth: clients, grants and tokens. Secrets, codes and tokens are stored as digests.
-- Times are seconds since 1970.
CREATE TABLE clients (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    redirect_uris TEXT NOT NULL, -- this and the next three: JSON lists
    grant_types TEXT NOT NULL,
    response_types TEXT NOT NULL,
    scopes TEXT NOT NULL,
    issued INTEGER NOT NULL, -- by an administrator
    pkce INTEGER NOT NULL,   -- whether an issued client has to use it
    surface TEXT,            -- of an issued client
    created_at REAL NOT NULL,
    secret TEXT, -- null for a public client
    revoked_at REAL,
    UNIQUE (tenant, id)
);

CREATE TABLE grants (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    client INTEGER REFERENCES clients ON DELETE CASCADE, -- null for a token of the control endpoint
    user INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    scopes TEXT NOT NULL, -- JSON list
    surface TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL
);
CREATE INDEX grants_by_client ON grants (client);
CREATE INDEX grants_by_user ON grants (user);

CREATE TABLE codes (
    digest TEXT PRIMARY KEY,
    grant INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE,
    redirect_uri TEXT NOT NULL,
    challenge TEXT,
    resource TEXT,
    expires_at REAL NOT NULL,
    used_at REAL
) WITHOUT ROWID;
CREATE INDEX codes_by_grant ON codes (grant);

-- An access token and its refresh token; a refresh makes a new pair of its parent.
CREATE TABLE token_pairs (
    key INTEGER PRIMARY KEY,
    grant INTEGER NOT NULL REFERENCES grants ON DELETE CASCADE,
    parent INTEGER REFERENCES token_pairs ON DELETE CASCADE,
    access TEXT NOT NULL UNIQUE,
    access_scopes TEXT NOT NULL, -- JSON list
    access_expires_at REAL NOT NULL,
    refresh TEXT UNIQUE,
    refreshed_at REAL, -- first use of the refresh token
    ended_at REAL
);
CREATE INDEX token_pairs_by_grant ON token_pairs (grant);
CREATE INDEX token_pairs_by_parent ON token_pairs (parent);

-- Identifiers by their type, and names of categories under the kind `category`; folded: without outer blanks, case folded.
CREATE TABLE terms (
    publication INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    kind TEXT NOT NULL,
    folded TEXT NOT NULL
);
CREATE INDEX terms_by_value ON terms (kind, folded);
CREATE INDEX terms_by_publication ON terms (publication);

-- Full text; rowid is records.key of a publication.
CREATE VIRTUAL TABLE words USING fts5 (
    title, authors, abstract, identifiers, categories, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER publication_leaves AFTER DELETE ON records WHEN OLD.resource = 'publications' BEGIN
    DELETE FROM words WHERE rowid = OLD.key;
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'assets' AND json_extract(document, '$.publication_id') = OLD.id;
    DELETE FROM records
    WHERE tenant = OLD.tenant AND resource = 'hard_copies' AND json_extract(document, '$.publication_id') = OLD.id;
    UPDATE records SET document = json_set(document, '$.publication_id', NULL)
    WHERE tenant = OLD.tenant AND resource = 'tasks' AND json_extract(document, '$.publication_id') = OLD.id;
    UPDATE records
    SET document = json_set(document, '$.publication_ids', json((
        SELECT json_group_array(value) FROM json_each(document, '$.publication_ids') WHERE value <> OLD.id
    )))
    WHERE tenant = OLD.tenant AND resource = 'collections'
    AND EXISTS (SELECT 1 FROM json_each(document, '$.publication_ids') WHERE value = OLD.id);
END;

CREATE TRIGGER user_leaves AFTER DELETE ON records WHEN OLD.resource = 'users' BEGIN
    UPDATE records SET document = json_set(document, '$.assignee_id', NULL)
    WHERE tenant = OLD.tenant AND resource = 'tasks' AND json_extract(document, '$.assignee_id') = OLD.id;
    UPDATE records SET document = json_set(document, '$.contributor', NULL)
    WHERE tenant = OLD.tenant AND resource = 'publications' AND json_extract(document, '$.contributor') = OLD.id;
END;

CREATE TRIGGER asset_leaves AFTER DELETE ON records WHEN OLD.resource = 'assets' BEGIN
    DELETE FROM files WHERE tenant = OLD.tenant AND id = json_extract(OLD.document, '$.file.id');
END;

CREATE TRIGGER file_is_replaced AFTER UPDATE ON records
WHEN OLD.resource = 'assets' AND json_extract(OLD.document, '$.file.id') <> json_extract(NEW.document, '$.file.id') BEGIN
    DELETE FROM files WHERE tenant = OLD.tenant AND id = json_extract(OLD.document, '$.file.id');
END;
