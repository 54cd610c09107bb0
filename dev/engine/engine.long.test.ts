// Also runs the tests that the regular run skips.
import './engine.test.ts'
