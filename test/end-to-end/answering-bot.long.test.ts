import { it, onTestFinished } from 'vitest'
import { startSimulatedSet } from '../chaos/simulated-set.ts'
import { testDatabase } from '../support/test-database.ts'
import { expectOneAnswerEach } from './answering-bot.ts'

const single = testDatabase()

it('the example bot answers each message once and hands over, although it and a core are killed', () =>
  expectOneAnswerEach(single, { visitors: 3, rounds: 3, perRound: 4 }))

it('the example bot answers each of 1,000 messages once, although it, both cores and the primary of the database are replaced again and again', async () => {
  const { database, replicaSet, stop } = await startSimulatedSet()
  onTestFinished(stop)
  const failOver = () => replicaSet.stepDown({ closes: true })
  await expectOneAnswerEach(database, { visitors: 20, rounds: 10, perRound: 5, failOver })
}, 1_200_000)
