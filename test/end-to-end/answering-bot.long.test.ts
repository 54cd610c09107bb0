import { it, onTestFinished } from 'vitest'
import { startSimulatedSet } from '../chaos/simulated-set.ts'
import { expectOneAnswerEach } from './answering-bot.ts'

it('the example bot answers each of 1,000 messages once, although it, both cores and the primary of the database are replaced again and again', async () => {
  const { database, replicaSet, stop } = await startSimulatedSet()
  onTestFinished(stop)
  const failOver = () => replicaSet.stepDown({ closes: true })
  await expectOneAnswerEach(database, { visitors: 20, rounds: 10, perRound: 5, failOver })
}, 1_200_000)
