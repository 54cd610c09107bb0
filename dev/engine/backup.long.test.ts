// Also runs the tests that the regular run skips.
import './backup.test.ts'
