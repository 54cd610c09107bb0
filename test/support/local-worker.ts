import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import { inject } from 'vitest'
import { connectCores } from '../../core-client/connect-cores.ts'
import { readDeliveryConfig } from '../../delivery/config.ts'
import { createDelivery } from '../../delivery/worker.ts'
import { atFileEnd } from './clean-up.ts'

/**
 * Starts a delivery worker in this process. It may send to the address 127.0.0.1 only, and stops at
 * the end of the test file. Its log is checked for secrets at the end of the test run.
 */
export async function startLocalWorker({ cores, dataDir }: { cores: { url: string }[]; dataDir: string }) {
  const output = pino.destination({ dest: join(inject('processOutput'), `local-${process.pid}.log`), sync: false })
  const token = await readFile(join(dataDir, 'delivery.token'), 'utf8')
  const urls = cores.map(({ url }) => url)
  const config = readDeliveryConfig({ CORE_URLS: urls.join(), DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' }, token)
  const connected = connectCores({ urls })
  const worker = createDelivery({ config, cores: connected.cores, logger: pino({ level: 'trace' }, output) })
  worker.start()
  atFileEnd(async () => {
    await worker.stop()
    connected.stop()
    // Keep the file open: a call may still fail, and be logged, after the core has stopped.
    output.flushSync()
  })
}
