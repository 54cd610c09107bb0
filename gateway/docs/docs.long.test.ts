// Also runs the cases that the regular run skips.
import './docs.test.ts'
