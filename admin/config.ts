import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import envSchema from 'env-schema'
import { type Static, Type } from 'typebox'

/**
 * Settings of the administration command. Environment variables, because arguments expose secrets.
 */
export const AdminSettings = Type.Object({
  CORE_URL: Type.String({ default: '', description: 'URL of the core; default: from DATA_DIR/demo.json.' }),
  SERVICE_TOKEN: Type.String({
    default: '',
    description: 'Service token with the scopes of the command; default: from DATA_DIR/demo.json.',
  }),
  CORE_CA: Type.String({
    default: '',
    description: 'File with the authorities (PEM) of the cores’ certificates; default: those of Node.',
  }),
  CLIENT_CERT: Type.String({
    default: '',
    description: 'File with the client certificate (PEM) for cores that require one. Reloaded when it changes.',
  }),
  CLIENT_KEY: Type.String({ default: '', description: 'File with the key of the client certificate (PEM).' }),
  DATA_DIR: Type.String({ default: '.data', description: 'Data folder of a service on this machine.' }),
})

export type AdminConfig = Static<typeof AdminSettings>

/** A setting is missing. The message names it. */
export class SettingError extends Error {
  override readonly name = 'SettingError'
}

/** Reads the settings. Errors: `SettingError`. */
export function readAdminConfig(env: NodeJS.ProcessEnv = process.env): AdminConfig {
  const data = Object.fromEntries(Object.entries(env).filter(([name]) => name in AdminSettings.properties))
  const config = envSchema<AdminConfig>({ schema: AdminSettings, data, env: false })
  if (config.CORE_URL && config.SERVICE_TOKEN) return config
  const demo = readDemo(join(config.DATA_DIR, 'demo.json'))
  const found = {
    ...config,
    CORE_URL: config.CORE_URL || (demo.coreUrl ?? ''),
    SERVICE_TOKEN: config.SERVICE_TOKEN || (demo.serviceToken ?? ''),
  }
  for (const name of ['CORE_URL', 'SERVICE_TOKEN'] as const) {
    if (!found[name]) throw new SettingError(`${name} is missing: set it, or let DATA_DIR/demo.json hold it`)
  }
  return found
}

function readDemo(file: string): { coreUrl?: string; serviceToken?: string } {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return {}
  }
}
