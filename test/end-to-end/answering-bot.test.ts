import { it } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { expectOneAnswerEach } from './answering-bot.ts'

const database = testDatabase()

it(
  'the example bot answers each message once and hands over, although it and a core are killed',
  () => expectOneAnswerEach(database, { visitors: 3, rounds: 3, perRound: 4 }),
  300_000,
)
