-- The keys of a JSON object, as DuckDB's function of this name has them.
CREATE OR REPLACE FUNCTION {schema}.json_keys(document jsonb)
RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
SELECT CASE WHEN jsonb_typeof($1) = 'object' THEN ARRAY(SELECT jsonb_object_keys($1)) END
$$
