import { expect, it } from 'vitest'
import { startDeliveryWorker } from '../support/delivery-worker.ts'
import { leaksIn, planted } from '../support/leaks.ts'
import { startStack } from '../support/stack.ts'

it('no log at trace level contains a secret or a text with the marker, even if processes crash', async () => {
  const stack = await startStack({ env: { LOG_LEVEL: 'trace' } })
  const worker = await startDeliveryWorker(stack, { LOG_LEVEL: 'trace' })
  const visitor = await stack.newVisitor({ clientInstanceId: planted })
  await visitor.send(`${planted} before the crash`)
  const [core, gateway] = [stack.cores[0]!, stack.gateways[0]!]
  const written = [core.process(), gateway.process(), worker.process()]
  process.kill(stack.enginePid(), 'SIGKILL')
  await visitor.send(`${planted} while the database is away`)
  await core.killAndRestart()
  await visitor.sendUntilAccepted(`${planted} again`)
  await Promise.all(written.slice(1).map((part) => part.stop()))
  const outputs = [...written, core.process()].map((part) => part.output())
  for (const output of outputs) expect(output).toContain('"level":')
  expect(outputs.flatMap(leaksIn)).toEqual([])
  const { accessGrant, renewalToken } = visitor.session
  for (const secret of [accessGrant, renewalToken, stack.demo.serviceToken])
    expect(outputs.join().includes(secret)).toBe(false)
})
