-- Football league; a match has two keys to teams, so has a transfer.
CREATE TABLE stadiums (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, seats INTEGER);
CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, founded INTEGER, stadium_id INTEGER REFERENCES stadiums (id));
CREATE TABLE players (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    position TEXT,
    born INTEGER,
    team_id INTEGER REFERENCES teams (id)
);
CREATE TABLE referees (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT);
CREATE TABLE matches (
    id INTEGER PRIMARY KEY,
    home_team INTEGER NOT NULL REFERENCES teams (id),
    away_team INTEGER NOT NULL REFERENCES teams (id),
    referee_id INTEGER REFERENCES referees (id),
    played_on TEXT,
    home_goals INTEGER,
    away_goals INTEGER
);
CREATE TABLE goals (
    id INTEGER PRIMARY KEY,
    match_id INTEGER NOT NULL REFERENCES matches (id),
    player_id INTEGER NOT NULL REFERENCES players (id),
    minute INTEGER
);
CREATE TABLE bookings (
    id INTEGER PRIMARY KEY,
    match_id INTEGER NOT NULL REFERENCES matches (id),
    player_id INTEGER NOT NULL REFERENCES players (id),
    colour TEXT
);
CREATE TABLE transfers (
    id INTEGER PRIMARY KEY,
    player_id INTEGER NOT NULL REFERENCES players (id),
    from_team INTEGER REFERENCES teams (id),
    to_team INTEGER REFERENCES teams (id),
    fee REAL,
    signed_on TEXT
);
CREATE TABLE sponsors (id INTEGER PRIMARY KEY, name TEXT NOT NULL, industry TEXT);
CREATE TABLE team_sponsors (
    team_id INTEGER NOT NULL REFERENCES teams (id),
    sponsor_id INTEGER NOT NULL REFERENCES sponsors (id),
    yearly_amount REAL,
    PRIMARY KEY (team_id, sponsor_id)
);
INSERT INTO stadiums VALUES (1, 'Mill Lane', 'Ashby', 18000), (2, 'The Crescent', 'Portwick', 42000), (3, 'Riverside Park', 'Dunmoor', 9500);
INSERT INTO teams VALUES (1, 'Ashby Rovers', 1899, 1), (2, 'Portwick City', 1921, 2), (3, 'Dunmoor Town', 1954, 3), (4, 'Portwick Athletic', 1930, 2);
INSERT INTO players VALUES
    (1, 'Jon Adeyemi', 'forward', 1998, 1), (2, 'Luka Brandt', 'keeper', 1995, 1), (3, 'Mateo Cruz', 'forward', 2001, 2), (4, 'Nils Dahl', 'defender', 1993, 2),
    (5, 'Omar Essa', 'midfielder', 2000, 3), (6, 'Pat Flynn', 'defender', 1990, 4), (7, 'Ravi Gill', 'forward', 2003, 3);
INSERT INTO referees VALUES (1, 'Helen Shaw', 'England'), (2, 'Igor Babic', 'Croatia'), (3, 'Jack Doyle', 'Ireland');
INSERT INTO matches VALUES
    (1, 1, 2, 1, '2024-08-17', 2, 1), (2, 3, 4, 2, '2024-08-17', 0, 0), (3, 2, 3, 1, '2024-08-24', 3, 1), (4, 4, 1, 2, '2024-08-24', 0, 1),
    (5, 2, 4, 1, '2024-08-31', 1, 2), (6, 1, 3, 2, '2024-09-07', 2, 2);
INSERT INTO goals VALUES
    (1, 1, 1, 12), (2, 1, 1, 77), (3, 1, 3, 90), (4, 3, 3, 5), (5, 3, 3, 34), (6, 3, 4, 60), (7, 3, 5, 88), (8, 4, 1, 41), (9, 5, 6, 23), (10, 6, 7, 91);
INSERT INTO bookings VALUES (1, 1, 4, 'yellow'), (2, 2, 6, 'red'), (3, 3, 5, 'yellow'), (4, 5, 4, 'yellow'), (5, 5, 6, 'yellow');
INSERT INTO transfers VALUES
    (1, 3, 1, 2, 4.5, '2023-07-01'), (2, 6, 2, 4, 0.8, '2022-01-15'), (3, 7, NULL, 3, 0.0, '2024-06-20'), (4, 1, 3, 1, 2.1, '2021-08-30');
INSERT INTO sponsors VALUES (1, 'Bluebird Air', 'airline'), (2, 'Kettle & Sons', 'food'), (3, 'Volt Bank', 'finance'), (4, 'Oakline', 'furniture');
INSERT INTO team_sponsors VALUES (1, 2, 150000), (2, 1, 900000), (2, 3, 400000), (4, 3, 120000);
