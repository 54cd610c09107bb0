import './deletions.test.ts'
import './retention-races.test.ts'
