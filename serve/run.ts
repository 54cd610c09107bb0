// Runs one role of the image: `node serve/run.ts serve`. All further arguments are those of the role.

import type { CoreConfig } from '../core/config.ts'
import { SettingError } from '../platform/settings/settings.ts'
import { failStart } from '../platform/settings/start-faults.ts'
import { readServeConfig } from './config.ts'
import { withDataFolderSecrets } from './data-folder.ts'

const { DATA_DIR } = readServeConfig()

const asGiven = async (config: CoreConfig) => ({ config, stop: async () => {} })

const roles: Record<string, () => Promise<unknown>> = {
  serve: () => import('./main.ts'),
  gateway: () => import('../gateway/main.ts'),
  core: () => import('../core/main.ts'),
  delivery: () => import('../delivery/main.ts'),
  admin: () => import('../admin/main.ts'),
  async migrate() {
    const { runMigrate } = await import('../core/migrate.ts')
    runMigrate(async (given) => ({ config: await withDataFolderSecrets(given, DATA_DIR), stop: async () => {} }))
  },
  async token() {
    const { runToken } = await import('../core/token.ts')
    runToken((given) => withDataFolderSecrets(given, DATA_DIR))
  },
  backup: async () => (await import('./backup.ts')).runBackup('backup', asGiven),
  restore: async () => (await import('./backup.ts')).runBackup('restore', asGiven),
}

const [role = ''] = process.argv.splice(2, 1)
const start = Object.hasOwn(roles, role) ? roles[role] : undefined
if (!start) failStart('service', new SettingError(`name a role: ${Object.keys(roles).join(', ')}`))
await start()
