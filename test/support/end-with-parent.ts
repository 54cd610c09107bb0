import process from 'node:process'

// Preloaded into every process that a test starts. Ends the process when its standard input closes, so that a
// killed test run leaves no processes behind.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'))
process.stdin.on('error', () => {})
process.stdin.resume().unref()
