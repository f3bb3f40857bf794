-- Museum in a border town; some names are not ASCII.
CREATE TABLE artists (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT, born INTEGER);
CREATE TABLE galleries (id INTEGER PRIMARY KEY, name TEXT NOT NULL, floor INTEGER);
CREATE TABLE "mécènes" (id INTEGER PRIMARY KEY, nom TEXT NOT NULL, depuis INTEGER);
CREATE TABLE artworks (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    artist_id INTEGER REFERENCES artists (id),
    gallery_id INTEGER REFERENCES galleries (id),
    "mécène_id" INTEGER REFERENCES "mécènes" (id),
    medium TEXT,
    year INTEGER
);
CREATE TABLE exhibitions (id INTEGER PRIMARY KEY, title TEXT NOT NULL, opens TEXT, closes TEXT);
CREATE TABLE exhibition_artworks (
    exhibition_id INTEGER NOT NULL REFERENCES exhibitions (id),
    artwork_id INTEGER NOT NULL REFERENCES artworks (id),
    PRIMARY KEY (exhibition_id, artwork_id)
);
CREATE TABLE visitors (id INTEGER PRIMARY KEY, name TEXT NOT NULL, "Straße" TEXT, town TEXT);
CREATE TABLE "Führungen" (
    id INTEGER PRIMARY KEY,
    exhibition_id INTEGER NOT NULL REFERENCES exhibitions (id),
    guide TEXT,
    "Sprache" TEXT,
    starts_at TEXT
);
CREATE TABLE "Führung_visitors" (
    "Führung_id" INTEGER NOT NULL REFERENCES "Führungen" (id),
    visitor_id INTEGER NOT NULL REFERENCES visitors (id),
    PRIMARY KEY ("Führung_id", visitor_id)
);
CREATE TABLE "café_bills" (id INTEGER PRIMARY KEY, visitor_id INTEGER REFERENCES visitors (id), total REAL, paid_on TEXT);
CREATE TABLE restorations (id INTEGER PRIMARY KEY, artwork_id INTEGER NOT NULL REFERENCES artworks (id), began TEXT, ended TEXT, cost REAL);
INSERT INTO artists VALUES (1, 'Clara Benoit', 'France', 1871), (2, 'Emil Hofer', 'Austria', 1902), (3, 'Sora Kim', 'Korea', 1965), (4, 'Unknown', NULL, NULL);
INSERT INTO galleries VALUES (1, 'Blue Room', 1), (2, 'Long Hall', 1), (3, 'Attic', 3);
INSERT INTO "mécènes" VALUES (1, 'Fondation Leroy', 1998), (2, 'Anna Keller', 2015), (3, 'Banque du Lac', 2006);
INSERT INTO artworks VALUES
    (1, 'Boats at Dawn', 1, 1, 1, 'oil', 1903), (2, 'The Seamstress', 1, 2, NULL, 'pastel', 1911), (3, 'Steel Garden', 2, 2, 3, 'sculpture', 1948),
    (4, 'Echo 7', 3, 3, 2, 'video', 2004), (5, 'Saint with Lamb', 4, NULL, 1, 'oil', 1580);
INSERT INTO exhibitions VALUES (1, 'Light on Water', '2024-03-01', '2024-06-30'), (2, 'After the War', '2024-05-15', '2024-09-15'), (3, 'Screens', '2024-10-01', '2025-01-31');
INSERT INTO exhibition_artworks VALUES (1, 1), (1, 2), (2, 3), (3, 4), (1, 4);
INSERT INTO visitors VALUES (1, 'Greta Maurer', 'Seestraße 4', 'Basel'), (2, 'Hugo Blanc', 'rue du Port 9', 'Mulhouse'), (3, 'Ida Conti', 'via Roma 2', 'Como'), (4, 'Jules Roy', 'rue Haute 1', 'Mulhouse');
INSERT INTO "Führungen" VALUES (1, 1, 'Petra', 'German', '2024-04-06 11:00'), (2, 1, 'Luc', 'French', '2024-04-06 14:00'), (3, 2, 'Petra', 'English', '2024-06-01 11:00');
INSERT INTO "Führung_visitors" VALUES (1, 1), (2, 2), (2, 4), (3, 1), (3, 3);
INSERT INTO "café_bills" VALUES (1, 1, 12.4, '2024-04-06'), (2, 2, 7.9, '2024-04-06'), (3, 1, 21.0, '2024-06-01'), (4, NULL, 4.5, '2024-06-02');
INSERT INTO restorations VALUES (1, 5, '2023-01-10', '2023-08-20', 18500), (2, 3, '2024-01-05', '2024-02-11', 2400), (3, 1, '2024-07-02', NULL, 5200);
