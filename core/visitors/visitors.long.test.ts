import './ending-interleavings.test.ts'
import './endings.test.ts'
import './identification-deaths.test.ts'
import './identification-interleavings.test.ts'
