-- Outpatient clinic.
CREATE TABLE departments (id INTEGER PRIMARY KEY, name TEXT NOT NULL, floor INTEGER);
CREATE TABLE doctors (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    specialty TEXT,
    department_id INTEGER,
    FOREIGN KEY (department_id) REFERENCES departments (id)
);
CREATE TABLE insurers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE patients (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    born TEXT,
    sex TEXT,
    phone TEXT,
    insurer_id INTEGER,
    FOREIGN KEY (insurer_id) REFERENCES insurers (id)
);
CREATE TABLE appointments (
    id INTEGER PRIMARY KEY,
    patient_id INTEGER NOT NULL,
    doctor_id INTEGER NOT NULL,
    starts_at TEXT NOT NULL,
    status TEXT NOT NULL,
    FOREIGN KEY (patient_id) REFERENCES patients (id),
    FOREIGN KEY (doctor_id) REFERENCES doctors (id)
);
CREATE TABLE diagnoses (code TEXT PRIMARY KEY, label TEXT NOT NULL);
CREATE TABLE appointment_diagnoses (
    appointment_id INTEGER NOT NULL REFERENCES appointments (id),
    diagnosis_code TEXT NOT NULL REFERENCES diagnoses (code),
    PRIMARY KEY (appointment_id, diagnosis_code)
);
CREATE TABLE medicines (id INTEGER PRIMARY KEY, name TEXT NOT NULL, form TEXT, price REAL);
CREATE TABLE prescriptions (
    id INTEGER PRIMARY KEY,
    appointment_id INTEGER NOT NULL REFERENCES appointments (id),
    medicine_id INTEGER NOT NULL REFERENCES medicines (id),
    daily_dose INTEGER,
    days INTEGER
);
CREATE TABLE allergies (
    patient_id INTEGER NOT NULL REFERENCES patients (id),
    medicine_id INTEGER NOT NULL REFERENCES medicines (id),
    severity TEXT,
    PRIMARY KEY (patient_id, medicine_id)
);
CREATE TABLE lab_tests (
    id INTEGER PRIMARY KEY,
    appointment_id INTEGER NOT NULL REFERENCES appointments (id),
    kind TEXT NOT NULL,
    value REAL,
    taken_on TEXT
);
CREATE VIEW doctor_workload AS
    SELECT d.name AS doctor, COUNT(*) AS booked
    FROM doctors AS d JOIN appointments AS a ON a.doctor_id = d.id
    GROUP BY d.id;
INSERT INTO departments VALUES (1, 'Cardiology', 2), (2, 'Dermatology', 1), (3, 'General Practice', 1), (4, 'Radiology', 0);
INSERT INTO doctors VALUES
    (1, 'Dr Lindqvist', 'cardiologist', 1), (2, 'Dr Mbeki', 'dermatologist', 2), (3, 'Dr Prasad', 'GP', 3), (4, 'Dr Rossi', 'GP', 3),
    (5, 'Dr Tanaka', 'radiologist', 4);
INSERT INTO insurers VALUES (1, 'Northcare'), (2, 'Mutua'), (3, 'HealthPlus');
INSERT INTO patients VALUES
    (1, 'Ines Walker', '1954-04-02', 'F', '555-0101', 1), (2, 'Jonas Petit', '1988-11-23', 'M', '555-0102', 2),
    (3, 'Kofi Mensah', '2001-06-17', 'M', NULL, 1), (4, 'Leila Aziz', '1971-09-09', 'F', '555-0104', NULL),
    (5, 'Marta Ruiz', '1949-12-30', 'F', '555-0105', 1);
INSERT INTO appointments VALUES
    (1, 1, 1, '2024-05-02 09:00', 'done'), (2, 2, 2, '2024-05-02 10:30', 'done'), (3, 3, 3, '2024-05-03 08:30', 'missed'),
    (4, 4, 3, '2024-05-06 11:00', 'done'), (5, 1, 3, '2024-05-07 14:00', 'done'), (6, 2, 4, '2024-05-08 09:15', 'cancelled'),
    (7, 3, 3, '2024-05-10 08:30', 'done');
INSERT INTO diagnoses VALUES ('I10', 'High blood pressure'), ('L20', 'Eczema'), ('J45', 'Asthma'), ('E11', 'Type 2 diabetes');
INSERT INTO appointment_diagnoses VALUES (1, 'I10'), (2, 'L20'), (4, 'E11'), (4, 'I10'), (7, 'J45'), (5, 'I10');
INSERT INTO medicines VALUES
    (1, 'Amlodipine', 'tablet', 6.2), (2, 'Hydrocortisone', 'cream', 4.8), (3, 'Salbutamol', 'inhaler', 9.9), (4, 'Metformin', 'tablet', 3.1),
    (5, 'Penicillin', 'tablet', 5.5);
INSERT INTO prescriptions VALUES (1, 1, 1, 1, 90), (2, 2, 2, 2, 14), (3, 4, 4, 2, 60), (4, 7, 3, 1, 30), (5, 5, 1, 1, 90);
INSERT INTO allergies VALUES (1, 5, 'severe'), (3, 5, 'mild'), (2, 2, 'mild');
INSERT INTO lab_tests VALUES
    (1, 1, 'cholesterol', 6.4, '2024-05-02'), (2, 4, 'glucose', 11.2, '2024-05-06'), (3, 5, 'cholesterol', 5.1, '2024-05-07'),
    (4, 7, 'glucose', 4.9, '2024-05-10');
