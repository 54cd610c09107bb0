// Also runs the tests that the regular run skips.
import './sockets.test.ts'
