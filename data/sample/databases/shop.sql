-- Kitchenware shop with a few branches.
CREATE TABLE categories (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    parent_id INTEGER REFERENCES categories (id)
);
CREATE TABLE suppliers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, lead_days INTEGER);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES categories (id),
    price REAL NOT NULL,
    in_stock INTEGER NOT NULL
);
CREATE TABLE product_suppliers (
    product_id INTEGER NOT NULL REFERENCES products (id),
    supplier_id INTEGER NOT NULL REFERENCES suppliers (id),
    unit_cost REAL NOT NULL,
    PRIMARY KEY (product_id, supplier_id)
);
CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT NOT NULL, opened TEXT);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, city TEXT, joined TEXT);
CREATE TABLE loyalty_cards (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    points INTEGER NOT NULL,
    tier TEXT NOT NULL
);
CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    store_id INTEGER NOT NULL REFERENCES stores (id),
    quantity INTEGER NOT NULL,
    sold_on TEXT NOT NULL
);
CREATE TABLE returns (
    id INTEGER PRIMARY KEY,
    transaction_id INTEGER NOT NULL REFERENCES transactions (id),
    reason TEXT,
    returned_on TEXT
);
INSERT INTO categories VALUES (1, 'Kitchen', NULL), (2, 'Coffee', 1), (3, 'Knives', 1), (4, 'Garden', NULL);
INSERT INTO suppliers VALUES (1, 'Brasswell & Co', 'Sheffield', 5), (2, 'Torrefatto', 'Turin', 14), (3, 'Greenhand', 'York', 3);
INSERT INTO products VALUES
    (1, 'Espresso Machine', 2, 349.0, 4), (2, 'Burr Grinder', 2, 89.0, 11), (3, 'Bread Knife', 3, 24.5, 30),
    (4, 'Stovetop Kettle', 1, 39.0, 0), (5, 'Watering Can', 4, 18.0, 7), (6, 'Paring Knife', 3, 12.0, 0);
INSERT INTO product_suppliers VALUES (1, 2, 210.0), (2, 2, 50.0), (2, 1, 55.0), (3, 1, 11.0), (4, 1, 19.0), (5, 3, 7.5), (6, 1, 5.0);
INSERT INTO stores VALUES (1, 'Leeds', '2015-03-01'), (2, 'York', '2018-09-15'), (3, 'Hull', '2023-05-20');
INSERT INTO customers VALUES
    (1, 'Amira Haddad', 'amira@mail.test', 'Leeds', '2021-02-11'), (2, 'Ben Okoro', 'ben@mail.test', 'York', '2022-07-30'),
    (3, 'Carla Stein', 'carla@mail.test', 'Leeds', '2023-01-05'), (4, 'Dov Levin', NULL, 'Hull', '2024-03-19'),
    (5, 'Ewa Nowak', 'ewa@mail.test', 'York', '2024-06-02');
INSERT INTO loyalty_cards VALUES (1, 1, 1840, 'gold'), (2, 2, 320, 'silver'), (3, 3, 2210, 'gold');
INSERT INTO transactions VALUES
    (1, 1, 1, 1, 1, '2024-01-14'), (2, 1, 2, 2, 1, '2024-02-03'), (3, 2, 3, 2, 2, '2024-02-20'), (4, 3, 1, 1, 1, '2024-03-08'),
    (5, 3, 4, 1, 1, '2024-03-08'), (6, 4, 5, 3, 3, '2024-04-22'), (7, 2, 2, 1, 1, '2024-05-01'), (8, 3, 3, 1, 1, '2023-12-11');
INSERT INTO returns VALUES (1, 4, 'leaks', '2024-03-15'), (2, 3, 'blunt', '2024-02-25'), (3, 6, 'changed mind', '2024-04-30');
