import { join } from 'node:path'
import { coreTlsSettings } from '../core-client/core-settings.ts'
import { demoRemedy, readJsonFile } from '../platform/settings/data-file.ts'
import { defineSettings, filledText, SettingError, text } from '../platform/settings/settings.ts'
import type { DemoValues } from './command.ts'
import texts from './settings.json' with { type: 'json' }

/** Settings are environment variables, because other users of the machine can read the arguments of a process. */
export const adminSettings = defineSettings(
  {
    CORE_URL: text(),
    SERVICE_TOKEN: text(),
    WEBHOOK_SECRET: text(),
    ...coreTlsSettings,
    DATA_DIR: filledText('.data'),
  },
  texts,
)

export function readAdminConfig(env: NodeJS.ProcessEnv = process.env) {
  const config = adminSettings.read(env)
  if (config.CORE_URL && config.SERVICE_TOKEN) return { ...config, demo: {} }
  const readFile = (name: string) =>
    readJsonFile<DemoValues & { coreUrl: string; serviceToken: string }>(join(config.DATA_DIR, name), demoRemedy)
  // `npm run serve` writes the first, `npm start` the second.
  const demo = readFile('admin.json') ?? readFile('demo.json') ?? {}
  const found = {
    ...config,
    CORE_URL: config.CORE_URL || (demo.coreUrl ?? ''),
    SERVICE_TOKEN: config.SERVICE_TOKEN || (demo.serviceToken ?? ''),
    demo: { gatewayUrl: demo.gatewayUrl, workspaceId: demo.workspaceId } satisfies DemoValues,
  }
  for (const name of ['CORE_URL', 'SERVICE_TOKEN'] as const) {
    if (!found[name] || (name === 'CORE_URL' && !URL.canParse(found[name])))
      throw new SettingError(
        `${name} is missing or invalid: set it, or let DATA_DIR name the folder of a service that has started on this machine`,
      )
  }
  return found
}
