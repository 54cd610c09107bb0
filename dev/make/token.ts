// `npm run make -- token`: creates a service token. Secrets may come from the data folder.
import { runToken } from '../../core/token.ts'
import { readDevConfig } from '../config.ts'
import { withDataFolderSecrets } from '../data-folder.ts'

runToken((given) => withDataFolderSecrets(given, readDevConfig()))
