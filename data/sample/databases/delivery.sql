-- Meal delivery; reserved words as names, some names not ASCII.
CREATE TABLE "Straße" (id INTEGER PRIMARY KEY, name TEXT NOT NULL, zone TEXT);
CREATE TABLE "user" (id INTEGER PRIMARY KEY, name TEXT NOT NULL, "from" TEXT, street_id INTEGER REFERENCES "Straße" (id));
CREATE TABLE "café" (id INTEGER PRIMARY KEY, name TEXT NOT NULL, cuisine TEXT, street_id INTEGER REFERENCES "Straße" (id), opened INTEGER);
CREATE TABLE "group" (id INTEGER PRIMARY KEY, title TEXT NOT NULL, "café_id" INTEGER REFERENCES "café" (id));
CREATE TABLE dish (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    price REAL NOT NULL,
    vegan INTEGER NOT NULL,
    group_id INTEGER REFERENCES "group" (id)
);
CREATE TABLE courier (id INTEGER PRIMARY KEY, name TEXT NOT NULL, transport TEXT, rating REAL);
CREATE TABLE "order" (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES "user" (id),
    courier_id INTEGER REFERENCES courier (id),
    "when" TEXT NOT NULL,
    minutes INTEGER,
    tip REAL
);
CREATE TABLE order_dish (
    order_id INTEGER NOT NULL REFERENCES "order" (id),
    dish_id INTEGER NOT NULL REFERENCES dish (id),
    "count" INTEGER NOT NULL,
    PRIMARY KEY (order_id, dish_id)
);
CREATE TABLE "table" (id INTEGER PRIMARY KEY, "café_id" INTEGER NOT NULL REFERENCES "café" (id), seats INTEGER, outside INTEGER);
CREATE TABLE "顧客メモ" (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES "user" (id), "内容" TEXT NOT NULL);
INSERT INTO "Straße" VALUES (1, 'Lindenstraße', 'north'), (2, 'Marktgasse', 'centre'), (3, 'Uferweg', 'south');
INSERT INTO "user" VALUES (1, 'Noemi', 'app', 1), (2, 'Otto', 'web', 2), (3, 'Pia', 'app', 2), (4, 'Qasim', 'web', 3), (5, 'Rin', 'app', 3);
INSERT INTO "café" VALUES (1, 'Golden Wok', 'Chinese', 2, 2011), (2, 'Da Nonna', 'Italian', 1, 1998), (3, 'Green Bowl', 'vegan', 2, 2021);
INSERT INTO "group" VALUES (1, 'Noodles', 1), (2, 'Starters', 1), (3, 'Pizza', 2), (4, 'Desserts', 2), (5, 'Bowls', 3);
INSERT INTO dish VALUES
    (1, 'Dan dan noodles', 11.5, 0, 1), (2, 'Spring rolls', 5.0, 1, 2), (3, 'Margherita', 9.0, 0, 3), (4, 'Tiramisu', 6.0, 0, 4), (5, 'Tofu bowl', 12.0, 1, 5),
    (6, 'Marinara', 8.0, 1, 3);
INSERT INTO courier VALUES (1, 'Sven', 'bike', 4.8), (2, 'Toma', 'scooter', 4.1), (3, 'Uli', 'car', 4.5);
INSERT INTO "order" VALUES
    (1, 1, 1, '2024-07-01 19:02', 31, 2.0), (2, 2, 2, '2024-07-01 19:40', 55, 0.0), (3, 3, 1, '2024-07-02 12:15', 24, 1.5), (4, 1, 2, '2024-07-03 20:20', 42, 1.0),
    (5, 4, 1, '2024-07-05 18:55', 37, 3.0), (6, 2, NULL, '2024-07-05 21:10', NULL, 0.0);
INSERT INTO order_dish VALUES (1, 3, 2), (1, 4, 1), (2, 1, 1), (2, 2, 2), (3, 5, 1), (4, 1, 1), (5, 6, 1), (5, 3, 1), (6, 2, 3);
INSERT INTO "table" VALUES (1, 1, 4, 0), (2, 1, 2, 1), (3, 2, 6, 0), (4, 3, 2, 1), (5, 3, 4, 1);
INSERT INTO "顧客メモ" VALUES (1, 1, 'doorbell broken'), (2, 4, 'allergic to peanuts'), (3, 2, 'leave at the gate');
