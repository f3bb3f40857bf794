-- University registry; mixed-case names, a section is known by course and term together.
CREATE TABLE Department (DeptCode TEXT PRIMARY KEY, DeptName TEXT NOT NULL, Budget REAL);
CREATE TABLE Instructor (
    InstructorID INTEGER PRIMARY KEY,
    FullName TEXT NOT NULL,
    DeptCode TEXT REFERENCES Department (DeptCode),
    Salary REAL
);
CREATE TABLE Student (
    StudentID INTEGER PRIMARY KEY,
    FullName TEXT NOT NULL,
    MajorCode TEXT REFERENCES Department (DeptCode),
    AdvisorID INTEGER REFERENCES Instructor (InstructorID),
    EntryYear INTEGER
);
CREATE TABLE Course (
    CourseNo TEXT PRIMARY KEY,
    Title TEXT NOT NULL,
    Credits INTEGER,
    DeptCode TEXT REFERENCES Department (DeptCode)
);
CREATE TABLE Prerequisite (
    CourseNo TEXT NOT NULL REFERENCES Course (CourseNo),
    RequiredNo TEXT NOT NULL REFERENCES Course (CourseNo),
    PRIMARY KEY (CourseNo, RequiredNo)
);
CREATE TABLE LectureRoom (RoomID INTEGER PRIMARY KEY, Building TEXT, Capacity INTEGER);
CREATE TABLE CourseSection (
    CourseNo TEXT NOT NULL REFERENCES Course (CourseNo),
    Term TEXT NOT NULL,
    RoomID INTEGER REFERENCES LectureRoom (RoomID),
    PRIMARY KEY (CourseNo, Term)
);
CREATE TABLE Teaches (
    InstructorID INTEGER NOT NULL REFERENCES Instructor (InstructorID),
    CourseNo TEXT NOT NULL,
    Term TEXT NOT NULL,
    PRIMARY KEY (InstructorID, CourseNo, Term),
    FOREIGN KEY (CourseNo, Term) REFERENCES CourseSection (CourseNo, Term)
);
CREATE TABLE Enrollment (
    StudentID INTEGER NOT NULL REFERENCES Student (StudentID),
    CourseNo TEXT NOT NULL,
    Term TEXT NOT NULL,
    Grade INTEGER,
    PRIMARY KEY (StudentID, CourseNo, Term),
    FOREIGN KEY (CourseNo, Term) REFERENCES CourseSection (CourseNo, Term)
);
CREATE TABLE Scholarship (ScholarshipID INTEGER PRIMARY KEY, Title TEXT NOT NULL, Amount REAL);
CREATE TABLE StudentScholarship (
    StudentID INTEGER NOT NULL REFERENCES Student (StudentID),
    ScholarshipID INTEGER NOT NULL REFERENCES Scholarship (ScholarshipID),
    AwardYear INTEGER,
    PRIMARY KEY (StudentID, ScholarshipID)
);
INSERT INTO Department VALUES ('MAT', 'Mathematics', 400000), ('BIO', 'Biology', 650000), ('HIS', 'History', 210000), ('PHY', 'Physics', 580000);
INSERT INTO Instructor VALUES
    (1, 'Nadia Farouk', 'MAT', 71000), (2, 'Oskar Lund', 'BIO', 68000), (3, 'Priya Nair', 'PHY', 74000), (4, 'Quentin Moss', 'HIS', 59000),
    (5, 'Rosa Velez', 'MAT', 80000);
INSERT INTO Student VALUES
    (1, 'Sam Whitlock', 'MAT', 1, 2021), (2, 'Tess Moreau', 'BIO', 2, 2022), (3, 'Umar Said', 'PHY', 3, 2021), (4, 'Vera Holm', 'MAT', 5, 2023),
    (5, 'Will Tan', 'HIS', NULL, 2023), (6, 'Xenia Pappas', 'BIO', 2, 2021);
INSERT INTO Course VALUES
    ('M101', 'Calculus', 6, 'MAT'), ('M201', 'Real Analysis', 6, 'MAT'), ('B110', 'Cell Biology', 5, 'BIO'), ('P101', 'Mechanics', 6, 'PHY'),
    ('H120', 'The Silk Road', 4, 'HIS'), ('P310', 'Quantum Physics', 8, 'PHY');
INSERT INTO Prerequisite VALUES ('M201', 'M101'), ('P310', 'P101'), ('P310', 'M201'), ('P101', 'M101');
INSERT INTO LectureRoom VALUES (1, 'North Hall', 120), (2, 'North Hall', 40), (3, 'Old Mill', 25), (4, 'Annex', 60);
INSERT INTO CourseSection VALUES
    ('M101', '2023F', 1), ('M101', '2024F', 1), ('M201', '2024S', 2), ('B110', '2023F', 2), ('P101', '2024S', 1), ('H120', '2024S', 3), ('P310', '2024F', NULL);
INSERT INTO Teaches VALUES (1, 'M101', '2023F'), (5, 'M101', '2024F'), (5, 'M201', '2024S'), (2, 'B110', '2023F'), (3, 'P101', '2024S'), (4, 'H120', '2024S');
INSERT INTO Enrollment VALUES
    (1, 'M101', '2023F', 88), (1, 'M201', '2024S', 79), (2, 'B110', '2023F', 93), (3, 'M101', '2023F', 45), (3, 'P101', '2024S', 71),
    (4, 'M101', '2024F', NULL), (5, 'H120', '2024S', 66), (6, 'B110', '2023F', 58), (3, 'M101', '2024F', 64), (6, 'H120', '2024S', 81);
INSERT INTO Scholarship VALUES (1, 'Founders Award', 3000), (2, 'Lovelace Grant', 5000), (3, 'Harbour Bursary', 1200);
INSERT INTO StudentScholarship VALUES (1, 1, 2022), (2, 2, 2023), (6, 2, 2022), (4, 3, 2024);
