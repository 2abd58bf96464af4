import { fileURLToPath } from 'node:url'
import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// In development Vite serves the page and passes the rest on to the server,
// under the address at which the browser sees the page (see scripts/dev.sh).
const server = process.env.GLASSBOX_DEV_SERVER ?? 'http://127.0.0.1:7717'

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: { outDir: 'pages/built', emptyOutDir: true, assetsInlineLimit: 0, chunkSizeWarningLimit: 4500 },
  server: {
    strictPort: true,
    proxy: { '/api': { target: server, ws: true }, '/v1': { target: server, ws: true } },
  },
})
