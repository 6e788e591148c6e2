-- A state of schema 2 becomes one of schema 3: values of other shapes, and hard copies that may lack a publication.

ALTER TABLE users ADD COLUMN extra TEXT;
ALTER TABLE publications ADD COLUMN extra TEXT;
ALTER TABLE locations ADD COLUMN extra TEXT;
ALTER TABLE authorities ADD COLUMN extra TEXT;
ALTER TABLE collections ADD COLUMN extra TEXT;
ALTER TABLE tasks ADD COLUMN extra TEXT;

CREATE TABLE new_hard_copies (
    tenant INTEGER NOT NULL REFERENCES tenants,
    id INTEGER NOT NULL,
    publication_id INTEGER,
    location_id INTEGER,
    barcode TEXT,
    call_number TEXT,
    status TEXT,
    acquired_on TEXT,
    note TEXT,
    extra TEXT,
    PRIMARY KEY (tenant, id),
    FOREIGN KEY (tenant, publication_id) REFERENCES publications (tenant, id) ON DELETE CASCADE
) WITHOUT ROWID;
INSERT INTO new_hard_copies (
    tenant, id, publication_id, location_id, barcode, call_number, status, acquired_on, note
) SELECT tenant, id, publication_id, location_id, barcode, call_number, status, acquired_on, note FROM hard_copies;
DROP TABLE hard_copies;
ALTER TABLE new_hard_copies RENAME TO hard_copies;
CREATE INDEX hard_copies_by_publication ON hard_copies (tenant, publication_id);
