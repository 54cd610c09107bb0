// `npm run token`: can also use the secrets of a data folder.
import { runToken } from '../core/token.ts'
import { readDevConfig } from './config.ts'
import { withDataFolderSecrets } from './data-folder.ts'

runToken((given) => withDataFolderSecrets(given, readDevConfig()))
