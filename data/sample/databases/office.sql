-- Consultancy: people, their managers, projects and hours.
CREATE TABLE site (id INTEGER PRIMARY KEY, city TEXT NOT NULL, desks INTEGER);
CREATE TABLE employee (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    title TEXT,
    salary REAL,
    hired TEXT,
    site_id INTEGER REFERENCES site (id),
    manager_id INTEGER REFERENCES employee (id)
);
CREATE TABLE client (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sector TEXT);
CREATE TABLE project (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    client_id INTEGER REFERENCES client (id),
    budget REAL,
    due TEXT,
    lead_id INTEGER REFERENCES employee (id)
);
CREATE TABLE assignment (
    employee_id INTEGER NOT NULL REFERENCES employee (id),
    project_id INTEGER NOT NULL REFERENCES project (id),
    role TEXT,
    PRIMARY KEY (employee_id, project_id)
);
CREATE TABLE timesheet (
    id INTEGER PRIMARY KEY,
    employee_id INTEGER NOT NULL,
    project_id INTEGER NOT NULL,
    day TEXT,
    hours REAL,
    FOREIGN KEY (employee_id, project_id) REFERENCES assignment (employee_id, project_id)
);
CREATE TABLE skill (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE employee_skill (
    employee_id INTEGER NOT NULL REFERENCES employee (id),
    skill_id INTEGER NOT NULL REFERENCES skill (id),
    level INTEGER,
    PRIMARY KEY (employee_id, skill_id)
);
CREATE VIEW org_chart AS
    SELECT e.name AS person, m.name AS boss FROM employee AS e LEFT JOIN employee AS m ON m.id = e.manager_id;
INSERT INTO site VALUES (1, 'Dublin', 60), (2, 'Utrecht', 25), (3, 'Malaga', 12);
INSERT INTO employee VALUES
    (1, 'Maeve Kelly', 'Director', 120000, '2012-01-09', 1, NULL), (2, 'Niels Bakker', 'Manager', 90000, '2015-05-18', 2, 1),
    (3, 'Olga Petrova', 'Analyst', 61000, '2020-02-03', 2, 2), (4, 'Paul Byrne', 'Analyst', 58000, '2022-09-12', 1, 2),
    (5, 'Quim Serra', 'Designer', 95000, '2019-11-25', 3, 2), (6, 'Ruth Adu', 'Manager', 88000, '2016-07-04', 1, 1), (7, 'Sean Moran', 'Intern', 24000, '2024-01-15', 1, 6);
INSERT INTO client VALUES (1, 'Lumen Energy', 'utilities'), (2, 'Farmhouse Dairy', 'food'), (3, 'City of Malaga', 'public');
INSERT INTO project VALUES
    (1, 'Smart Meter', 1, 250000, '2024-12-01', 2), (2, 'Milk Run', 2, 80000, '2024-06-30', 6), (3, 'Open Streets', 3, 120000, '2025-03-15', 2), (4, 'Intranet', NULL, 15000, '2024-09-01', 6);
INSERT INTO assignment VALUES (3, 1, 'analyst'), (4, 1, 'analyst'), (5, 3, 'designer'), (4, 2, 'analyst'), (7, 2, 'support'), (3, 3, 'analyst');
INSERT INTO timesheet VALUES
    (1, 3, 1, '2024-05-06', 7.5), (2, 4, 1, '2024-05-06', 8.0), (3, 5, 3, '2024-05-06', 6.0), (4, 4, 2, '2024-05-07', 4.0), (5, 7, 2, '2024-05-07', 7.0), (6, 3, 1, '2024-05-07', 9.5);
INSERT INTO skill VALUES (1, 'Python'), (2, 'Facilitation'), (3, 'Figma'), (4, 'Spanish');
INSERT INTO employee_skill VALUES (3, 1, 4), (4, 1, 2), (2, 2, 5), (5, 3, 5), (5, 4, 5), (6, 2, 3);
