// SPDX-License-Identifier: Apache-2.0
//
// As held-go, in Java: each step in a thread of its own, programs as children.

import java.io.FileInputStream;
import java.net.ConnectException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;

class Held {
    public static void main(String[] args) throws InterruptedException {
        Thread busy = new Thread(() -> {
            while (true) {
                Thread.yield();
            }
        });
        busy.setDaemon(true);
        busy.start();
        for (int i = 0; i + 1 < args.length; i += 2) {
            String op = args[i], what = args[i + 1];
            Thread thread = new Thread(() -> tell(op, what));
            thread.start();
            thread.join();
        }
    }

    static void tell(String op, String what) {
        String outcome = "ok";
        try {
            step(op, what);
        } catch (ConnectException e) {
            outcome = e.getMessage().contains("refused") ? "ok" : e.getMessage();
        } catch (Exception e) {
            outcome = e.getMessage().contains("not permitted") ? "EPERM" : e.toString();
        }
        // Of a program that ran it is that one's to tell.
        if (!op.equals("exec") || !outcome.equals("ok")) {
            System.out.println(op + " " + outcome);
        }
    }

    static void step(String op, String what) throws Exception {
        String[] peer = what.split(":");
        switch (op) {
            case "open" -> new FileInputStream(what).close();
            case "unlink" -> Files.delete(Path.of(what));
            case "connect" -> new Socket(peer[0], Integer.parseInt(peer[1])).close();
            case "send" -> {
                try (DatagramSocket socket = new DatagramSocket()) {
                    InetAddress to = InetAddress.getByName(peer[0]);
                    socket.send(new DatagramPacket(new byte[1], 1, to, Integer.parseInt(peer[1])));
                }
            }
            default -> new ProcessBuilder(what).inheritIO().start().waitFor();
        }
    }
}
