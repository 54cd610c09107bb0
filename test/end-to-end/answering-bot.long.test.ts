import { it } from 'vitest'
import { testDatabase } from '../support/test-database.ts'
import { expectOneAnswerEach } from './answering-bot.ts'

const database = testDatabase()

it(
  'the example bot answers each of 1,000 messages once, although it and both cores are killed again and again',
  () => expectOneAnswerEach(database, { visitors: 20, rounds: 10, perRound: 5 }),
  1_200_000,
)
