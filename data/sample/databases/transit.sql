-- City transport; every key is written as REFERENCES without a column.
CREATE TABLE depot (id INTEGER PRIMARY KEY, name TEXT NOT NULL, district TEXT);
CREATE TABLE vehicle (id INTEGER PRIMARY KEY, kind TEXT, seats INTEGER, built INTEGER, depot_id INTEGER REFERENCES depot);
CREATE TABLE driver (id INTEGER PRIMARY KEY, name TEXT NOT NULL, hired TEXT, depot_id INTEGER REFERENCES depot);
CREATE TABLE line (id INTEGER PRIMARY KEY, label TEXT NOT NULL, mode TEXT);
CREATE TABLE stop (id INTEGER PRIMARY KEY, name TEXT NOT NULL, zone INTEGER, step_free INTEGER);
CREATE TABLE line_stop (
    line_id INTEGER NOT NULL REFERENCES line,
    stop_id INTEGER NOT NULL REFERENCES stop,
    seq INTEGER NOT NULL,
    PRIMARY KEY (line_id, stop_id)
);
CREATE TABLE trip (
    id INTEGER PRIMARY KEY,
    line_id INTEGER NOT NULL REFERENCES line,
    vehicle_id INTEGER REFERENCES vehicle,
    driver_id INTEGER REFERENCES driver,
    departed TEXT,
    delay_min INTEGER
);
CREATE TABLE incident (id INTEGER PRIMARY KEY, trip_id INTEGER NOT NULL REFERENCES trip, cause TEXT, reported TEXT);
CREATE TABLE fare_card (id INTEGER PRIMARY KEY, holder TEXT, plan TEXT, balance REAL);
CREATE TABLE tap (
    id INTEGER PRIMARY KEY,
    card_id INTEGER NOT NULL REFERENCES fare_card,
    trip_id INTEGER NOT NULL REFERENCES trip,
    stop_id INTEGER NOT NULL REFERENCES stop,
    tapped_at TEXT
);
INSERT INTO depot VALUES (1, 'Eastgate', 'East'), (2, 'Canal Yard', 'Centre'), (3, 'Fernhill', 'North');
INSERT INTO vehicle VALUES (1, 'tram', 180, 2012, 2), (2, 'tram', 220, 2020, 2), (3, 'bus', 70, 2008, 1), (4, 'bus', 65, 2019, 3), (5, 'bus', 70, 2023, 1);
INSERT INTO driver VALUES (1, 'Gita Anand', '2010-04-01', 2), (2, 'Hal Brook', '2019-09-01', 1), (3, 'Iris Cole', '2022-01-10', 3), (4, 'Jan Dvorak', '2005-11-11', 2);
INSERT INTO line VALUES (1, 'T1', 'tram'), (2, 'T4', 'tram'), (3, '12', 'bus'), (4, '88', 'bus');
INSERT INTO stop VALUES (1, 'Central Square', 1, 1), (2, 'University', 1, 1), (3, 'Airport', 3, 1), (4, 'Old Bridge', 1, 0), (5, 'Fernhill Road', 2, 0);
INSERT INTO line_stop VALUES (1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 1, 1), (2, 4, 2), (3, 4, 1), (3, 5, 2), (4, 2, 1), (4, 5, 2);
INSERT INTO trip VALUES
    (1, 1, 1, 1, '2024-06-03 07:10', 2), (2, 1, 2, 4, '2024-06-03 07:30', 0), (3, 2, 2, 4, '2024-06-03 09:05', 11), (4, 3, 3, 2, '2024-06-03 08:00', 6),
    (5, 4, 4, 3, '2024-06-04 08:15', 0), (6, 3, 5, 2, '2024-06-04 18:40', 19),
    (7, 4, 3, 3, '2024-06-05 07:55', 1);
INSERT INTO incident VALUES (1, 3, 'signal fault', '2024-06-03 09:12'), (2, 6, 'traffic', '2024-06-04 18:50'), (3, 6, 'door fault', '2024-06-04 19:02');
INSERT INTO fare_card VALUES (1, 'Karin Ott', 'monthly', 0), (2, 'Leo Park', 'pay as you go', 14.2), (3, 'Mina Qadir', 'student', 3.5), (4, 'Noor Reza', 'pay as you go', 0.4);
INSERT INTO tap VALUES
    (1, 1, 1, 1, '2024-06-03 07:11'), (2, 2, 1, 2, '2024-06-03 07:19'), (3, 3, 3, 1, '2024-06-03 09:06'), (4, 1, 4, 4, '2024-06-03 08:01'),
    (5, 2, 6, 5, '2024-06-04 18:58'), (6, 3, 5, 2, '2024-06-04 08:16'), (7, 4, 7, 2, '2024-06-05 07:57');
