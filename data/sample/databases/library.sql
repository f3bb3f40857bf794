-- Town library; table and column names contain spaces.
CREATE TABLE "Library Member" ("member no" INTEGER PRIMARY KEY, "first name" TEXT, "last name" TEXT, "date of birth" TEXT);
CREATE TABLE "Branch" ("branch no" INTEGER PRIMARY KEY, "branch name" TEXT, "street address" TEXT);
CREATE TABLE "Author" ("author no" INTEGER PRIMARY KEY, "full name" TEXT, "country" TEXT);
CREATE TABLE "Book" ("isbn" TEXT PRIMARY KEY, "title" TEXT, "year published" INTEGER, "genre" TEXT);
CREATE TABLE "Book Author" (
    "isbn" TEXT NOT NULL REFERENCES "Book" ("isbn"),
    "author no" INTEGER NOT NULL REFERENCES "Author" ("author no"),
    PRIMARY KEY ("isbn", "author no")
);
CREATE TABLE "Book Copy" (
    "copy no" INTEGER PRIMARY KEY,
    "isbn" TEXT NOT NULL REFERENCES "Book" ("isbn"),
    "branch no" INTEGER NOT NULL REFERENCES "Branch" ("branch no"),
    "condition" TEXT
);
CREATE TABLE "Loan Record" (
    "loan no" INTEGER PRIMARY KEY,
    "copy no" INTEGER NOT NULL REFERENCES "Book Copy" ("copy no"),
    "member no" INTEGER NOT NULL REFERENCES "Library Member" ("member no"),
    "out date" TEXT,
    "due date" TEXT,
    "back date" TEXT
);
CREATE TABLE "Fine Payment" (
    "payment no" INTEGER PRIMARY KEY,
    "loan no" INTEGER NOT NULL REFERENCES "Loan Record" ("loan no"),
    "amount due" REAL,
    "paid on" TEXT
);
CREATE TABLE "Reading Circle" (
    "circle no" INTEGER PRIMARY KEY,
    "circle name" TEXT,
    "branch no" INTEGER REFERENCES "Branch" ("branch no"),
    "current isbn" TEXT REFERENCES "Book" ("isbn")
);
CREATE TABLE "Circle Attendance" (
    "circle no" INTEGER NOT NULL REFERENCES "Reading Circle" ("circle no"),
    "member no" INTEGER NOT NULL REFERENCES "Library Member" ("member no"),
    PRIMARY KEY ("circle no", "member no")
);
INSERT INTO "Library Member" VALUES
    (1, 'Agnes', 'Bell', '1961-03-14'), (2, 'Bruno', 'Costa', '1990-08-01'), (3, 'Chloe', 'Dunn', '2012-05-25'), (4, 'Dario', 'Egan', '1985-10-10'),
    (5, 'Edith', 'Frey', '1948-01-19');
INSERT INTO "Branch" VALUES (1, 'Harbour', '2 Quay Lane'), (2, 'Hilltop', '19 Ridge Road'), (3, 'Station', '1 Platform Square');
INSERT INTO "Author" VALUES (1, 'Lena Marsh', 'Ireland'), (2, 'Tomas Vidal', 'Chile'), (3, 'Aiko Mori', 'Japan'), (4, 'Hugh Pellam', 'Ireland');
INSERT INTO "Book" VALUES
    ('111', 'The Salt Road', 2004, 'novel'), ('222', 'Winter Bees', 2018, 'nature'), ('333', 'A Lamp for Ada', 2011, 'children'),
    ('444', 'Night Ferry', 1999, 'crime'), ('555', 'Paper Mountains', 2021, 'novel');
INSERT INTO "Book Author" VALUES ('111', 1), ('222', 3), ('333', 1), ('333', 4), ('444', 4), ('555', 2);
INSERT INTO "Book Copy" VALUES
    (1, '111', 1, 'good'), (2, '111', 2, 'worn'), (3, '222', 1, 'good'), (4, '333', 3, 'torn'), (5, '444', 2, 'good'), (6, '444', 2, 'worn');
INSERT INTO "Loan Record" VALUES
    (1, 1, 1, '2024-02-01', '2024-02-22', '2024-02-20'), (2, 3, 2, '2024-02-10', '2024-03-02', '2024-03-11'),
    (3, 4, 3, '2024-03-01', '2024-03-22', NULL), (4, 2, 4, '2024-03-05', '2024-03-26', '2024-04-02'), (5, 5, 1, '2024-04-01', '2024-04-22', NULL),
    (6, 1, 2, '2024-04-03', '2024-04-24', '2024-04-20');
INSERT INTO "Fine Payment" VALUES (1, 2, 1.8, '2024-03-11'), (2, 4, 1.4, NULL), (3, 3, 6.0, NULL);
INSERT INTO "Reading Circle" VALUES (1, 'Crime on Thursdays', 2, '444'), (2, 'Slow Readers', 1, '111'), (3, 'Small Ears', 3, '333');
INSERT INTO "Circle Attendance" VALUES (1, 1), (1, 4), (2, 1), (2, 2), (2, 5), (3, 3);
