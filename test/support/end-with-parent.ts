import process from 'node:process'

// Loaded into every process that a test starts: it ends when its standard input does, so that a killed test run
// leaves nothing behind.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'))
process.stdin.on('error', () => {})
process.stdin.resume().unref()
