-- A state of schema 3 becomes one of schema 4: authorities that the service makes of the authors of publications.

ALTER TABLE authorities ADD COLUMN of_author INTEGER NOT NULL DEFAULT 0;
