import { coreSettings, readCoreConfig } from '../../core/config.ts'
import { DeliverySettings, readDeliveryConfig } from '../../delivery/config.ts'
import { readConfig, SettingsSchema } from '../../gateway/config.ts'

type Environment = Record<string, string>

/** For each process: setting names, required settings in production, reader and port in the image. */
export const parts = {
  core: {
    names: Object.keys(coreSettings.properties),
    required: ['MONGODB_URI', 'SECRET_KEYS', 'WORKSPACE_SESSION_SECRET'],
    read: (env: Environment) => readCoreConfig(env),
    port: 8090,
  },
  gateway: {
    names: Object.keys(SettingsSchema.properties),
    required: ['CORE_TOKEN', 'CORE_URLS', 'TRUST_PROXY'],
    read: (env: Environment) => readConfig(env),
    port: 8080,
  },
  delivery: {
    names: Object.keys(DeliverySettings.properties),
    required: ['DELIVERY_TOKEN', 'CORE_URLS'],
    read: (env: Environment) => readDeliveryConfig(env),
    port: 8091,
  },
}

export type PartName = keyof typeof parts
export const partNames = Object.keys(parts) as PartName[]

/** Lists the problems of an environment for a process. Empty if it can start. */
export function faultsOf(part: PartName, env: Environment): string[] {
  const { names, required, read } = parts[part]
  const faults = [
    ...Object.keys(env)
      .filter((name) => !names.includes(name) && name !== 'NODE_ENV')
      .map((name) => `${part} has no setting ${name}`),
    ...required.filter((name) => !env[name]).map((name) => `${part} lacks ${name}`),
  ]
  try {
    read(env)
  } catch (error) {
    faults.push((error as Error).message)
  }
  return faults
}
