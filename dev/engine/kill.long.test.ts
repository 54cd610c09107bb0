import './kill.test.ts'
