-- Back office of a hotel chain: the large schema. A room is known by hotel and room number together.
CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country_code TEXT REFERENCES countries (code));
CREATE TABLE currencies (code TEXT PRIMARY KEY, per_euro REAL);
CREATE TABLE brands (id INTEGER PRIMARY KEY, name TEXT NOT NULL, stars INTEGER);
CREATE TABLE hotels (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    brand_id INTEGER REFERENCES brands (id),
    city_id INTEGER REFERENCES cities (id),
    currency_code TEXT REFERENCES currencies (code),
    opened INTEGER
);
CREATE TABLE amenities (id INTEGER PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE hotel_amenities (
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    amenity_id INTEGER NOT NULL REFERENCES amenities (id),
    PRIMARY KEY (hotel_id, amenity_id)
);
CREATE TABLE room_types (id INTEGER PRIMARY KEY, label TEXT NOT NULL, max_people INTEGER, square_metres INTEGER);
CREATE TABLE rooms (
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    room_no INTEGER NOT NULL,
    type_id INTEGER REFERENCES room_types (id),
    floor INTEGER,
    PRIMARY KEY (hotel_id, room_no)
);
CREATE TABLE seasons (id INTEGER PRIMARY KEY, label TEXT NOT NULL, starts TEXT, ends TEXT);
CREATE TABLE tariffs (
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    type_id INTEGER NOT NULL REFERENCES room_types (id),
    season_id INTEGER NOT NULL REFERENCES seasons (id),
    nightly REAL,
    PRIMARY KEY (hotel_id, type_id, season_id)
);
CREATE TABLE corporate_accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL, discount REAL);
CREATE TABLE guests (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    country_code TEXT REFERENCES countries (code),
    account_id INTEGER REFERENCES corporate_accounts (id)
);
CREATE TABLE club_memberships (id INTEGER PRIMARY KEY, guest_id INTEGER UNIQUE REFERENCES guests (id), level TEXT, points INTEGER);
CREATE TABLE agencies (id INTEGER PRIMARY KEY, name TEXT NOT NULL, commission REAL);
CREATE TABLE reservations (
    id INTEGER PRIMARY KEY,
    guest_id INTEGER NOT NULL REFERENCES guests (id),
    agency_id INTEGER REFERENCES agencies (id),
    check_in TEXT,
    check_out TEXT,
    state TEXT
);
CREATE TABLE reservation_rooms (
    reservation_id INTEGER NOT NULL REFERENCES reservations (id),
    hotel_id INTEGER NOT NULL,
    room_no INTEGER NOT NULL,
    PRIMARY KEY (reservation_id, hotel_id, room_no),
    FOREIGN KEY (hotel_id, room_no) REFERENCES rooms (hotel_id, room_no)
);
CREATE TABLE invoices (id INTEGER PRIMARY KEY, reservation_id INTEGER NOT NULL REFERENCES reservations (id), issued TEXT, total REAL);
CREATE TABLE invoice_lines (
    invoice_id INTEGER NOT NULL REFERENCES invoices (id),
    line_no INTEGER NOT NULL,
    what TEXT,
    amount REAL,
    PRIMARY KEY (invoice_id, line_no)
);
CREATE TABLE payments (id INTEGER PRIMARY KEY, invoice_id INTEGER NOT NULL REFERENCES invoices (id), method TEXT, amount REAL, received TEXT);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY,
    reservation_id INTEGER NOT NULL REFERENCES reservations (id),
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    score INTEGER,
    comment TEXT
);
CREATE TABLE positions (id INTEGER PRIMARY KEY, title TEXT NOT NULL, hourly REAL);
CREATE TABLE staff (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    position_id INTEGER REFERENCES positions (id),
    hotel_id INTEGER REFERENCES hotels (id),
    manager_id INTEGER REFERENCES staff (id)
);
CREATE TABLE shifts (id INTEGER PRIMARY KEY, staff_id INTEGER NOT NULL REFERENCES staff (id), begins TEXT, hours REAL);
CREATE TABLE languages (code TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE staff_languages (
    staff_id INTEGER NOT NULL REFERENCES staff (id),
    language_code TEXT NOT NULL REFERENCES languages (code),
    PRIMARY KEY (staff_id, language_code)
);
CREATE TABLE housekeeping_tasks (
    id INTEGER PRIMARY KEY,
    hotel_id INTEGER NOT NULL,
    room_no INTEGER NOT NULL,
    staff_id INTEGER REFERENCES staff (id),
    done_at TEXT,
    FOREIGN KEY (hotel_id, room_no) REFERENCES rooms (hotel_id, room_no)
);
CREATE TABLE maintenance_tickets (
    id INTEGER PRIMARY KEY,
    hotel_id INTEGER NOT NULL,
    room_no INTEGER NOT NULL,
    opened_by INTEGER REFERENCES staff (id),
    fixed_by INTEGER REFERENCES staff (id),
    fault TEXT,
    opened TEXT,
    closed TEXT,
    FOREIGN KEY (hotel_id, room_no) REFERENCES rooms (hotel_id, room_no)
);
CREATE TABLE vendors (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city_id INTEGER REFERENCES cities (id));
CREATE TABLE stock_items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, unit TEXT);
CREATE TABLE stock_levels (
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    item_id INTEGER NOT NULL REFERENCES stock_items (id),
    on_hand INTEGER,
    minimum INTEGER,
    PRIMARY KEY (hotel_id, item_id)
);
CREATE TABLE purchase_orders (
    id INTEGER PRIMARY KEY,
    vendor_id INTEGER NOT NULL REFERENCES vendors (id),
    hotel_id INTEGER NOT NULL REFERENCES hotels (id),
    approved_by INTEGER REFERENCES staff (id),
    placed TEXT
);
CREATE TABLE purchase_order_lines (
    po_id INTEGER NOT NULL REFERENCES purchase_orders (id),
    item_id INTEGER NOT NULL REFERENCES stock_items (id),
    quantity INTEGER,
    unit_price REAL,
    PRIMARY KEY (po_id, item_id)
);
CREATE TABLE restaurants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, hotel_id INTEGER REFERENCES hotels (id), covers INTEGER);
CREATE TABLE menu_items (id INTEGER PRIMARY KEY, restaurant_id INTEGER REFERENCES restaurants (id), name TEXT, price REAL);
CREATE TABLE restaurant_checks (
    id INTEGER PRIMARY KEY,
    restaurant_id INTEGER REFERENCES restaurants (id),
    guest_id INTEGER REFERENCES guests (id),
    served TEXT
);
CREATE TABLE check_lines (
    check_id INTEGER NOT NULL REFERENCES restaurant_checks (id),
    menu_item_id INTEGER NOT NULL REFERENCES menu_items (id),
    quantity INTEGER,
    PRIMARY KEY (check_id, menu_item_id)
);
CREATE TABLE function_rooms (id INTEGER PRIMARY KEY, hotel_id INTEGER REFERENCES hotels (id), name TEXT, seats INTEGER);
CREATE TABLE banquets (
    id INTEGER PRIMARY KEY,
    function_room_id INTEGER NOT NULL REFERENCES function_rooms (id),
    account_id INTEGER REFERENCES corporate_accounts (id),
    occasion TEXT,
    held TEXT,
    attendees INTEGER
);
CREATE VIEW unpaid_invoices AS
    SELECT i.id, i.total - COALESCE(SUM(p.amount), 0) AS owed
    FROM invoices AS i LEFT JOIN payments AS p ON p.invoice_id = i.id
    GROUP BY i.id HAVING owed > 0;
INSERT INTO countries VALUES ('PT', 'Portugal'), ('DK', 'Denmark'), ('GB', 'United Kingdom'), ('JP', 'Japan');
INSERT INTO cities VALUES (1, 'Lisbon', 'PT'), (2, 'Porto', 'PT'), (3, 'Aarhus', 'DK'), (4, 'Bristol', 'GB');
INSERT INTO currencies VALUES ('EUR', 1.0), ('DKK', 7.46), ('GBP', 0.85);
INSERT INTO brands VALUES (1, 'Alder Grand', 5), (2, 'Alder Inn', 3), (3, 'Pod by Alder', 2);
INSERT INTO hotels VALUES
    (1, 'Alder Grand Lisbon', 1, 1, 'EUR', 1987), (2, 'Alder Inn Porto', 2, 2, 'EUR', 2004), (3, 'Alder Inn Aarhus', 2, 3, 'DKK', 2011), (4, 'Pod Bristol', 3, 4, 'GBP', 2021);
INSERT INTO amenities VALUES (1, 'pool'), (2, 'sauna'), (3, 'parking'), (4, 'gym');
INSERT INTO hotel_amenities VALUES (1, 1), (1, 2), (1, 4), (2, 3), (3, 2), (3, 3), (4, 4);
INSERT INTO room_types VALUES (1, 'single', 1, 14), (2, 'double', 2, 22), (3, 'suite', 4, 55);
INSERT INTO rooms VALUES (1, 101, 2, 1), (1, 102, 2, 1), (1, 501, 3, 5), (2, 11, 1, 1), (2, 12, 2, 1), (3, 21, 2, 2), (4, 1, 1, 0), (4, 2, 1, 0);
INSERT INTO seasons VALUES (1, 'summer', '2024-06-01', '2024-08-31'), (2, 'winter', '2024-12-01', '2025-02-28'), (3, 'shoulder', '2024-03-01', '2024-05-31');
INSERT INTO tariffs VALUES (1, 2, 1, 260), (1, 3, 1, 620), (1, 2, 2, 180), (2, 1, 1, 75), (2, 2, 1, 98), (3, 2, 1, 1100), (4, 1, 1, 64), (1, 3, 2, 410);
INSERT INTO corporate_accounts VALUES (1, 'Nordwind AG', 0.12), (2, 'Teapot Media', 0.08), (3, 'Sado Trading', 0.15);
INSERT INTO guests VALUES
    (1, 'Freja Holm', 'DK', 1), (2, 'Tiago Reis', 'PT', NULL), (3, 'Hana Sato', 'JP', 3), (4, 'Owen Price', 'GB', 2), (5, 'Lucy Marsh', 'GB', NULL);
INSERT INTO club_memberships VALUES (1, 1, 'platinum', 48000), (2, 3, 'gold', 15500), (3, 5, 'basic', 300);
INSERT INTO agencies VALUES (1, 'SunTrips', 0.15), (2, 'Citybreaker', 0.18), (3, 'Old Town Travel', 0.10);
INSERT INTO reservations VALUES
    (1, 1, NULL, '2024-06-10', '2024-06-14', 'stayed'), (2, 2, 1, '2024-07-01', '2024-07-03', 'stayed'), (3, 3, 2, '2024-07-20', '2024-07-27', 'stayed'),
    (4, 4, NULL, '2024-08-05', '2024-08-06', 'cancelled'), (5, 5, 2, '2024-12-20', '2024-12-27', 'booked'), (6, 1, NULL, '2024-12-02', '2024-12-04', 'stayed');
INSERT INTO reservation_rooms VALUES (1, 1, 101), (1, 1, 102), (2, 2, 12), (3, 1, 501), (4, 4, 1), (5, 3, 21), (6, 4, 2);
INSERT INTO invoices VALUES (1, 1, '2024-06-14', 2140), (2, 2, '2024-07-03', 196), (3, 3, '2024-07-27', 4480), (4, 6, '2024-12-04', 128);
INSERT INTO invoice_lines VALUES (1, 1, 'lodging', 2080), (1, 2, 'minibar', 60), (2, 1, 'lodging', 196), (3, 1, 'lodging', 4340), (3, 2, 'laundry', 140), (4, 1, 'lodging', 128);
INSERT INTO payments VALUES (1, 1, 'card', 2140, '2024-06-14'), (2, 2, 'cash', 196, '2024-07-03'), (3, 3, 'card', 2000, '2024-07-27'), (4, 4, 'transfer', 128, '2024-12-19');
INSERT INTO reviews VALUES (1, 1, 1, 9, 'wonderful breakfast'), (2, 2, 2, 6, 'thin walls'), (3, 3, 1, 10, 'perfect'), (4, 6, 4, 4, 'too small');
INSERT INTO positions VALUES (1, 'general manager', 48), (2, 'receptionist', 17), (3, 'cleaner', 14), (4, 'technician', 21);
INSERT INTO staff VALUES
    (1, 'Rui Costa', 1, 1, NULL), (2, 'Sara Melo', 2, 1, 1), (3, 'Ana Pinto', 3, 1, 2), (4, 'Mads Juhl', 1, 3, 1), (5, 'Kim Berg', 4, 3, 4), (6, 'Joe Finch', 2, 4, 1), (7, 'Eva Lopes', 3, 2, NULL);
INSERT INTO shifts VALUES (1, 2, '2024-06-10 07:00', 8), (2, 3, '2024-06-10 09:00', 6), (3, 5, '2024-06-11 08:00', 8), (4, 6, '2024-06-11 22:00', 9), (5, 2, '2024-06-12 15:00', 8);
INSERT INTO languages VALUES ('pt', 'Portuguese'), ('en', 'English'), ('da', 'Danish'), ('ja', 'Japanese');
INSERT INTO staff_languages VALUES (1, 'pt'), (1, 'en'), (2, 'pt'), (2, 'ja'), (4, 'da'), (4, 'en'), (6, 'en'), (5, 'da');
INSERT INTO housekeeping_tasks VALUES (1, 1, 101, 3, '2024-06-14 11:30'), (2, 1, 102, 3, '2024-06-14 12:10'), (3, 2, 12, 7, '2024-07-03 10:45'), (4, 4, 1, NULL, NULL);
INSERT INTO maintenance_tickets VALUES
    (1, 1, 501, 2, NULL, 'leaking tap', '2024-07-21', NULL), (2, 3, 21, 4, 5, 'radiator cold', '2024-02-02', '2024-02-03'), (3, 4, 2, 6, 5, 'door lock', '2024-12-02', '2024-12-05'), (4, 3, 21, 5, 5, 'lamp flickers', '2024-03-01', '2024-03-01');
INSERT INTO vendors VALUES (1, 'Linho Textiles', 2), (2, 'Nordsoap', 3), (3, 'Tejo Wines', 1);
INSERT INTO stock_items VALUES (1, 'bath towel', 'piece'), (2, 'hand soap', 'litre'), (3, 'red wine', 'bottle'), (4, 'light bulb', 'piece');
INSERT INTO stock_levels VALUES (1, 1, 400, 250), (1, 3, 36, 60), (2, 1, 90, 100), (3, 2, 15, 10), (4, 4, 3, 20), (1, 2, 25, 20);
INSERT INTO purchase_orders VALUES (1, 1, 1, 1, '2024-05-02'), (2, 2, 3, 4, '2024-05-19'), (3, 3, 1, 1, '2024-06-30'), (4, 1, 2, NULL, '2024-07-08');
INSERT INTO purchase_order_lines VALUES (1, 1, 200, 6.5), (2, 2, 40, 3.2), (3, 3, 120, 5.9), (4, 1, 60, 6.8), (1, 2, 10, 4.0);
INSERT INTO restaurants VALUES (1, 'Miradouro', 1, 80), (2, 'Fjord Bar', 3, 35), (3, 'Casa da Ribeira', 2, 50);
INSERT INTO menu_items VALUES (1, 1, 'Grilled octopus', 28), (2, 1, 'Custard tart', 4), (3, 2, 'Smoked herring', 14), (4, 3, 'Salt cod', 19);
INSERT INTO restaurant_checks VALUES (1, 1, 1, '2024-06-11'), (2, 1, 3, '2024-07-22'), (3, 3, 2, '2024-07-02'), (4, 2, NULL, '2024-07-15');
INSERT INTO check_lines VALUES (1, 1, 2), (1, 2, 2), (2, 1, 1), (3, 4, 2), (4, 3, 1);
INSERT INTO function_rooms VALUES (1, 1, 'Tagus', 200), (2, 1, 'Belem', 60), (3, 3, 'Mols', 90);
INSERT INTO banquets VALUES (1, 1, 1, 'sales conference', '2024-09-12', 160), (2, 2, NULL, 'wedding', '2024-06-22', 55), (3, 3, 2, 'product launch', '2024-10-03', 95);
