import { setTimeout as delay } from 'node:timers/promises'
import texts from './settings.json' with { type: 'json' }
import { described, filledText, oneOf, port, SettingError } from './settings.ts'
import { failStart } from './start-faults.ts'

export const processSettings = described(
  {
    LOG_LEVEL: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'info'),
    METRICS_HOST: filledText('::'),
    METRICS_PORT: port(0),
  },
  texts,
)

/** The service token is missing. A core that starts at the same time may still create it. */
export class MissingTokenError extends SettingError {
  override readonly name = 'MissingTokenError'
}

/** Returns the error for a missing token. In production no core creates one, so the process does not wait for it. */
export const missingToken = (env: NodeJS.ProcessEnv, message: string): SettingError =>
  env.NODE_ENV === 'production'
    ? new SettingError(`${message}; \`npm run make -- secrets\` creates one`)
    : new MissingTokenError(message)

/** A core that creates the token may first wait up to a minute for its database. */
const tokenTimeoutMs = 75_000
const tokenPollMs = 100

/** Reads settings. Waits for a missing token. Ends the process if a setting is invalid. */
export async function readAtStart<T>(part: string, read: () => T): Promise<T> {
  for (let waited = 0; ; waited += tokenPollMs) {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof SettingError)) throw error
      if (!(error instanceof MissingTokenError) || waited >= tokenTimeoutMs) {
        failStart(part, error)
      }
      if (waited === 0) console.error(`${part}: waiting for a core to create the token in DATA_DIR`)
      await delay(tokenPollMs)
    }
  }
}
