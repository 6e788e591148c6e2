-- One schema for all API versions: a publication is stored once, independently of them.
-- `key` joins tables; `id` is the number in the tenant's API.
-- `extra` is a JSON object with the values of fields that only other shapes have (`--shapes`); null until one is written.

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

-- Users, locations, hard copies, authorities, collections and tasks: a JSON object each.
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

-- A tenant has one organization, itself.
CREATE TABLE organizations (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (tenant, id)
);

CREATE TABLE publications (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id INTEGER NOT NULL,
    title TEXT,
    publishable_type TEXT,
    published_on TEXT, -- YYYY-MM-DD
    abstract TEXT,
    authors TEXT NOT NULL, -- JSON list of {name, type}
    import_state TEXT,
    cover INTEGER REFERENCES files,
    contributor INTEGER REFERENCES records ON DELETE SET NULL,
    organization INTEGER REFERENCES organizations,
    extra TEXT,
    UNIQUE (tenant, id)
);
CREATE INDEX publications_by_date ON publications (tenant, published_on);

CREATE TABLE identifiers (
    publication INTEGER NOT NULL REFERENCES publications ON DELETE CASCADE,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    value TEXT NOT NULL,  -- verbatim
    folded TEXT NOT NULL, -- without outer blanks, case folded, for searches
    PRIMARY KEY (publication, position)
) WITHOUT ROWID;
CREATE INDEX identifiers_by_value ON identifiers (type, folded);

CREATE TABLE categories (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id INTEGER NOT NULL,
    name TEXT NOT NULL,
    folded TEXT NOT NULL,
    UNIQUE (tenant, id),
    UNIQUE (tenant, name)
);
CREATE INDEX categories_by_folded ON categories (tenant, folded);

CREATE TABLE publication_categories (
    publication INTEGER NOT NULL REFERENCES publications ON DELETE CASCADE,
    position INTEGER NOT NULL,
    category INTEGER NOT NULL REFERENCES categories,
    PRIMARY KEY (publication, position)
) WITHOUT ROWID;
CREATE INDEX publications_by_category ON publication_categories (category);

CREATE TABLE assets (
    key INTEGER PRIMARY KEY,
    tenant INTEGER NOT NULL REFERENCES tenants,
    id INTEGER NOT NULL,
    publication INTEGER NOT NULL REFERENCES publications ON DELETE CASCADE,
    name TEXT,
    content_type TEXT,
    file INTEGER NOT NULL REFERENCES files,
    UNIQUE (tenant, id)
);
CREATE INDEX assets_by_publication ON assets (publication);

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

-- Full text; rowid is publications.key.
CREATE VIRTUAL TABLE words USING fts5 (
    title, authors, abstract, identifiers, categories, tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TRIGGER publication_leaves AFTER DELETE ON publications BEGIN
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
END;
