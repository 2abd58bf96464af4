import { defineConfig } from 'vitest/config'

// The journeys share one server and one browser, so they go one after another.
export default defineConfig({
  test: {
    include: ['journeys/**/*.test.ts'], environment: 'node', globalSetup: 'journeys/setup.ts',
    fileParallelism: false, testTimeout: 60_000, hookTimeout: 60_000,
  },
})
