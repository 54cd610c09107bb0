import './keyboard.test.ts'
