-- Where decoding is not greedy a cell is asked several times; the repeat counts from 0.
ALTER TABLE sweep ADD COLUMN repeats BIGINT DEFAULT 1;
ALTER TABLE run_cell ADD COLUMN repeat BIGINT DEFAULT 0;
ALTER TABLE outcome ADD COLUMN repeat BIGINT DEFAULT 0;
ALTER TABLE ranking ADD COLUMN flip_rate DOUBLE;         -- share of pairs of repeats, one right and one wrong; NULL without repeats
